"""Layouts of values on tiles: base orders, views in normal form, their text."""

from popple.plan.layout.layout import (
    LINEAR,
    LONG_RUN,
    Adjacency,
    Flat,
    Grouped,
    Layout,
    Named,
    Order,
    Part,
    Reduced,
    Ring,
    adjacency_of_axis,
)
from popple.plan.layout.text import parse_layout
from popple.plan.layout.tiles import ConvTiles, JointTiles, PoolTiles, Tiles
from popple.plan.layout.views import (
    Dims,
    Step,
    Unknown,
    View,
    inverse,
    permuted,
    repeated,
    sliced,
)

__all__ = [
    "LINEAR",
    "LONG_RUN",
    "Adjacency",
    "ConvTiles",
    "Dims",
    "Flat",
    "Grouped",
    "JointTiles",
    "Layout",
    "Named",
    "Order",
    "Part",
    "PoolTiles",
    "Reduced",
    "Ring",
    "Step",
    "Tiles",
    "Unknown",
    "View",
    "adjacency_of_axis",
    "inverse",
    "parse_layout",
    "permuted",
    "repeated",
    "sliced",
]
