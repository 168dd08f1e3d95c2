"""Indexed reads and writes: table first, then indices, then updates."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef("gather", "gather", "Rows of a table picked by indices.", arity=(2, None)),
    OpDef("scatter", "gather", "Table with rows replaced.", arity=(2, None)),
    OpDef("scatter_add", "gather", "Table with rows added to.", arity=(2, None)),
    OpDef("one_hot", "gather", "1 at each index, else 0."),
)
