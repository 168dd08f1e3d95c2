"""Lowering of matrix products: mm, bmm, addmm, mv, scaled float8 products."""

from __future__ import annotations

from torch.fx import Node

from popple.capture.torch.aten.forms import Lowering, emit_one, one_op
from popple.capture.torch.builder import NodeContext
from popple.graph import TensorType


def lower_add_product(context: NodeContext) -> None:
    """`c + a b`."""
    addend, left, right = context.args[:3]
    kind = context.result_types()
    (product,) = context.emit("matmul", [left, right], kind, suffix=".product")
    emit_one(context, "add", sources=[product, addend])


def lower_matrix_vector(context: NodeContext) -> None:
    """A vector is a matrix with one column."""
    left, right = context.args[:2]
    (result,) = context.result_types()
    matrix, vector = context.type_of(left), context.type_of(right)
    column = TensorType(vector.dtype, (*vector.shape, 1))
    row = TensorType(matrix.dtype, (1,) * (2 - len(matrix.shape)) + matrix.shape)
    left_name = context.builder.name_of(left)
    right_name = context.builder.name_of(right)
    (b,) = context.emit("reshape", [right], [column], suffix=".b", storage=right_name)
    (a,) = context.emit("reshape", [left], [row], suffix=".a", storage=left_name)
    wide = TensorType(result.dtype, (row.shape[0], 1))
    (product,) = context.emit("matmul", [a, b], [wide], suffix=".product")
    shaped = context.emit("reshape", [product], [result], storage=product)
    context.finish_all(shaped)


def lower_add_matrix_vector(context: NodeContext) -> None:
    """`c + a b` for a vector b, as a matrix with one column."""
    addend, matrix, vector = context.args[:3]
    (result,) = context.result_types()
    kind = context.type_of(vector)
    column = TensorType(kind.dtype, (*kind.shape, 1))
    name = context.builder.name_of(vector)
    (b,) = context.emit("reshape", [vector], [column], suffix=".b", storage=name)
    wide = TensorType(result.dtype, (*result.shape, 1))
    (product,) = context.emit("matmul", [matrix, b], [wide], suffix=".product")
    (shaped,) = context.emit(
        "reshape", [product], [result], suffix=".flat", storage=product
    )
    emit_one(context, "add", sources=[shaped, addend])


def lower_scaled_product(context: NodeContext) -> None:
    """A product of numbers of 8 bits.

    One scale for a matrix belongs to the type of its numbers, and the product has it
    applied; scales for rows or columns are multiplied afterwards.
    """
    left, right, *scales = context.args[:4]
    bias = context.node.kwargs.get("bias", context.arg(4))
    kind = context.result_types()
    (name,) = context.emit("matmul", [left, right], kind, suffix=".product")
    for index, scale in enumerate(scales):
        if context.type_of(scale).num_elements > 1:
            suffix = f".scale{index}"
            (name,) = context.emit("mul", [name, scale], kind, suffix=suffix)
    if isinstance(bias, Node):
        (name,) = context.emit("add", [name, bias], kind)
    context.finish(name)


LOWERINGS: dict[str, Lowering] = {
    "aten.mm": one_op("matmul"),
    "aten._scaled_mm": lower_scaled_product,
    "aten.bmm": one_op("matmul"),
    "aten.addmm": lower_add_product,
    "aten.baddbmm": lower_add_product,
    "aten.addmv": lower_add_matrix_vector,
    "aten.mv": lower_matrix_vector,
    "aten.dot": lower_matrix_vector,
}
