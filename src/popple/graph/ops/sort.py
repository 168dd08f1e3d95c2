"""Ordering along a dimension."""

from popple.graph.attrs import integer
from popple.graph.opdef import OpDef

_DIM = integer("dim", "The dimension along which elements are ordered.", default=-1)

OPS = (
    OpDef(
        "sort",
        "sort",
        "Sorted elements and their indices.",
        num_outputs=2,
        attrs=(_DIM,),
    ),
    OpDef(
        "top_k",
        "sort",
        "The largest elements, as many as the result has, and their indices.",
        num_outputs=2,
        attrs=(_DIM,),
    ),
)
