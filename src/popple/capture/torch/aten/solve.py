"""Lowering of Cholesky decomposition and triangular systems."""

from __future__ import annotations

from torch.fx import Node

from popple.capture.torch.aten.forms import Lowering
from popple.capture.torch.builder import NodeContext
from popple.graph import Attr, TensorType


def lower_cholesky(context: NodeContext) -> None:
    """The factor, and that there is one: on the machine nobody asks."""
    is_upper = bool(context.node.kwargs.get("upper", context.arg(1, False)))
    factor, *other = context.result_types()
    names = context.emit(
        "cholesky", [context.inputs()[0]], [factor], attrs={"is_upper": is_upper}
    )
    for kind in other:
        names += context.emit("fill", [], [kind], suffix=".info")
    context.finish_all(names)


def lower_check(context: NodeContext) -> None:
    """Errors are the host's to find; no result is made."""
    context.finish_all([])


def lower_solve_triangular(context: NodeContext) -> None:
    """`linalg.solve_triangular(A, B)`, keywords saying which triangle and side."""
    a, b = context.args[:2]
    given = context.node.kwargs
    attrs: dict[str, Attr] = {
        "is_upper": bool(given["upper"]),
        "is_left": bool(given.get("left", True)),
        "is_unit": bool(given.get("unitriangular", False)),
    }
    context.finish_all([_solve(context, a, b, attrs)])


def lower_triangular_solve(context: NodeContext) -> None:
    """`triangular_solve(B, A)`: the unknowns, and A once more."""
    b, a = context.args[:2]
    attrs: dict[str, Attr] = {
        # The transpose of an upper triangle is a lower one.
        "is_upper": bool(context.arg(2, True)) != bool(context.arg(3, False)),
        "is_left": True,
        "is_unit": bool(context.arg(4, False)),
    }
    solution = _solve(context, a, b, attrs)
    context.finish_all([solution, context.builder.name_of(a)])


def lower_cholesky_solve(context: NodeContext) -> None:
    """`cholesky_solve(B, L)`: the triangle, then its transpose."""
    b, factor = context.args[:2]
    attrs: dict[str, Attr] = {"is_left": True}
    half = _solve(context, factor, b, attrs, ".half")
    context.finish_all([_solve(context, factor, half, attrs)])


def _solve(
    context: NodeContext,
    matrix: Node,
    given: Node | str,
    attrs: dict[str, Attr],
    suffix: str = "",
) -> str:
    """One system; a matrix or a right-hand side for all is repeated for each."""
    result = context.result_types()[0]
    size = context.type_of(matrix).shape[-2:]
    wide = TensorType(result.dtype, (*result.shape[:-2], *size))
    names = [
        _spread(context, matrix, wide, f"{suffix}.a"),
        given if isinstance(given, str) else _spread(context, given, result, ".b"),
    ]
    return context.emit(
        "triangular_solve", names, [result], suffix=suffix, attrs=attrs
    )[0]


def _spread(context: NodeContext, node: Node, wide: TensorType, suffix: str) -> str:
    name = context.builder.name_of(node)
    if context.type_of(node).shape == wide.shape:
        return name
    return context.emit("broadcast", [name], [wide], suffix=suffix, storage=name)[0]


LOWERINGS: dict[str, Lowering] = {
    "aten.linalg_cholesky_ex": lower_cholesky,
    "aten.cholesky": lower_cholesky,
    "aten.cholesky_solve": lower_cholesky_solve,
    "aten.linalg_solve_triangular": lower_solve_triangular,
    "aten.triangular_solve": lower_triangular_solve,
    "aten._linalg_check_errors": lower_check,
}
