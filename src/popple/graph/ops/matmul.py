"""Op table: matrix products."""

from popple.graph.opdef import OpDef
from popple.graph.signature import Signature


def _inner_dimensions_agree(signature: Signature) -> str:
    left, right = signature.inputs
    if len(left.shape) < 2 or len(left.shape) != len(right.shape):
        return f"needs operands of one rank of at least 2, got {left} and {right}"
    (*left_batch, rows, inner), (*right_batch, inner_right, cols) = (
        left.shape,
        right.shape,
    )
    if inner != inner_right or left_batch != right_batch:
        return f"cannot multiply {left} by {right}"
    if signature.outputs[0].shape != (*left_batch, rows, cols):
        return f"gives [...,{rows},{cols}], not {signature.outputs[0]}"
    return ""


OPS = (
    OpDef(
        "matmul",
        "matmul",
        "Batched matrix product of [...,M,K] and [...,K,N].",
        arity=(2, 2),
        check=_inner_dimensions_agree,
    ),
)
