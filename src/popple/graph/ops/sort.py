"""Ordering along a dimension."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef("sort", "sort", "Sorted elements and their indices.", num_outputs=2),
    OpDef("top_k", "sort", "The `k` largest and their indices.", num_outputs=2),
)
