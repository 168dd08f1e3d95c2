"""Matrix decompositions and triangular systems, in stacks of square matrices."""

from popple.graph.attrs import flag
from popple.graph.opdef import OpDef, same_shape
from popple.graph.signature import Signature

_IS_UPPER = flag("is_upper", "The triangle is above the diagonal.", default=False)


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
    axis = -2 if signature.flag("is_left") else -1
    if matrix.shape[:-2] != given.shape[:-2] or given.shape[axis] != matrix.shape[-1]:
        return f"cannot solve {matrix} for {given}"
    if signature.outputs[0].shape != given.shape:
        return f"gives what {given} has, not {signature.outputs[0]}"
    return ""


OPS = (
    OpDef(
        "cholesky",
        "solve",
        "Triangular factor of symmetric matrices.",
        attrs=(_IS_UPPER,),
        check=_is_decomposed,
    ),
    OpDef(
        "triangular_solve",
        "solve",
        "X of A X = B, or of X A = B, for a triangular A.",
        arity=(2, 2),
        attrs=(
            _IS_UPPER,
            flag("is_left", "A stands left of X.", default=True),
            flag("is_unit", "The diagonal of A is 1.", default=False),
        ),
        check=_is_solved,
    ),
)
