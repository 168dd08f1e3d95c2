"""Lowering of gathers, embeddings and scatters; the table is the first input."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, one_op
from popple.capture.torch.builder import NodeContext


def lower_embedding_gradient(context: NodeContext) -> None:
    """Rows of a zero table added to: gradient and indices in, table out."""
    gradient, indices = context.args[:2]
    (table,) = context.result_types()
    # The machine adds rows to a table that exists; torch makes the table in the
    # operator.
    (zeros,) = context.emit("fill", [], [table], suffix=".zeros")
    names = context.emit("scatter_add", [zeros, indices, gradient], [table])
    context.finish_all(names)


LOWERINGS: dict[str, Lowering] = {
    "aten.embedding": one_op("gather"),
    "aten.embedding_dense_backward": lower_embedding_gradient,
    "aten.gather": one_op("gather"),
    "aten.index_select": one_op("gather"),
    "aten.index": one_op("gather"),
    "aten._unsafe_index": one_op("gather"),
    "aten.take": one_op("gather"),
    "aten.scatter": one_op("scatter"),
    "aten.index_put": one_op("scatter"),
    "aten._unsafe_index_put": one_op("scatter"),
    "aten.index_copy": one_op("scatter"),
    "aten.index_fill": one_op("scatter"),
    "aten.masked_scatter": one_op("scatter"),
    "aten.scatter_add": one_op("scatter_add"),
    "aten.scatter_reduce": one_op("scatter_add"),
    "aten.index_add": one_op("scatter_add"),
    "aten.index_reduce": one_op("scatter_add"),
}
