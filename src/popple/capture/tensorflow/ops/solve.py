"""Cholesky decomposition and triangular systems."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.graph import Attr, TensorType


def lower_cholesky(context: OpContext) -> Sequence[Known]:
    """The lower factor of every matrix."""
    attrs: dict[str, Attr] = {"is_upper": False}
    result = context.result_type()
    return [context.emit_one("cholesky", [context.name(0)], result, attrs=attrs)]


def lower_triangular_solve(context: OpContext) -> Sequence[Known]:
    """Matrices from the left; an adjoint is the other triangle.

    A matrix or a right-hand side for all is repeated for each.
    """
    is_lower, is_adjoint = bool(context.attr("lower")), bool(context.attr("adjoint"))
    attrs: dict[str, Attr] = {"is_upper": is_lower == is_adjoint, "is_left": True}
    result = context.result_type()
    size = context.input_type(0).shape[-2:]
    names = [
        _spread(context, 0, (*result.shape[:-2], *size)),
        _spread(context, 1, result.shape),
    ]
    return [context.emit_one("triangular_solve", names, result, attrs=attrs)]


def _spread(context: OpContext, index: int, shape: tuple[int, ...]) -> str:
    name, kind = context.name(index), context.input_type(index)
    if kind.shape == shape:
        return name
    wide = context.reshape(
        name, (*(1,) * (len(shape) - len(kind.shape)), *kind.shape), f".wide{index}"
    )
    full = TensorType(kind.dtype, shape)
    return context.emit_one(
        "broadcast", [wide], full, suffix=f".spread{index}", storage=wide
    )


RULES: dict[str, Rule] = {
    "Cholesky": lower_cholesky,
    "MatrixTriangularSolve": lower_triangular_solve,
    "BatchMatrixTriangularSolve": lower_triangular_solve,
}
