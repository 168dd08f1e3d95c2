"""Matrix decompositions and triangular systems, in stacks of square matrices."""

from popple.graph.opdef import OpDef, same_shape
from popple.graph.signature import Signature


def _is_square(signature: Signature) -> str:
    matrix = signature.inputs[0]
    if len(matrix.shape) < 2 or matrix.shape[-1] != matrix.shape[-2]:
        return f"needs square matrices, got {matrix}"
    return ""


def _is_decomposed(signature: Signature) -> str:
    return _is_square(signature) or same_shape(signature)


def _is_solved(signature: Signature) -> str:
    """The unknowns have the shape of the right-hand side, which fits the matrix."""
    matrix, given = signature.inputs
    if complaint := _is_square(signature):
        return complaint
    axis = -2 if signature.attr("is_left", True) else -1
    if matrix.shape[:-2] != given.shape[:-2] or given.shape[axis] != matrix.shape[-1]:
        return f"cannot solve {matrix} for {given}"
    if signature.outputs[0].shape != given.shape:
        return f"gives what {given} has, not {signature.outputs[0]}"
    return ""


OPS = (
    OpDef(
        "cholesky",
        "solve",
        "Triangular factor of symmetric matrices; `is_upper` says which.",
        check=_is_decomposed,
    ),
    OpDef(
        "triangular_solve",
        "solve",
        "X of A X = B, or of X A = B without `is_left`, for a triangular A; "
        "`is_unit`: its diagonal is 1.",
        arity=(2, 2),
        check=_is_solved,
    ),
)
