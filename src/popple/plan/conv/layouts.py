"""Layouts of convolution operands and results, and how finely a copy between two cuts.

A layout of this planner reads `conv[64,128/1:16|out g1...]`: a value of shape [64,128]
in which 16 neighbours along dimension 1 are adjacent in memory. Views taken since
follow after `>`, reshapes leave no trace, so adjacency is kept as a stride of flat
indices. Every other layout is taken to lie in flat order.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from popple.plan.permutation import Permutation

_BASE = re.compile(r"conv\[(?P<shape>[\d,]*)/(?P<axis>\d+):(?P<group>\d+)\|")
_SLICE = re.compile(r"slice\[(?P<before>[\d,]+):(?P<after>[\d,]+)")
_LONG_RUN = 1 << 20

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Adjacency:
    """`group` elements whose flat indices differ by `stride` are memory neighbours."""

    stride: int
    group: int


def adjacency_of_axis(shape: Dims, axis: int, group: int) -> Adjacency:
    """Neighbours along one dimension of a shape."""
    return Adjacency(math.prod(shape[axis + 1 :]), group)


def render_layout(shape: Dims, axis: int, group: int, splits: str) -> str:
    """The layout of a value blocked by `group` along `axis`, split as told."""
    return f"conv[{_render_dims(shape)}/{axis}:{group}|{splits}]"


def find_adjacency(layout: str) -> Adjacency:
    """What is adjacent in a value of this layout, views followed."""
    base, *views = layout.split(">")
    adjacency = _find_base(base)
    for view in views:
        adjacency = _follow(adjacency, view)
    return adjacency


def find_group(layout: str, shape: Dims) -> int:
    """Elements of a value in memory order: a group, or what divides its dimension."""
    found = find_adjacency(layout)
    axis, _ = _locate(found.stride, shape)
    return (
        math.gcd(found.group, shape[axis]) if found.group < _LONG_RUN else shape[axis]
    )


def copy_atom(layout: str, wanted: Adjacency) -> int:
    """Elements a rearranging copy moves at once; 0 if an exchange does it all."""
    found = find_adjacency(layout)
    if found.stride != wanted.stride:
        return 1
    if found.group % wanted.group == 0:
        return 0
    return math.gcd(found.group, wanted.group)


def _render_dims(dims: Dims) -> str:
    return ",".join(map(str, dims))


def _parse_dims(text: str) -> Dims:
    return tuple(int(dim) for dim in text.split(",") if dim)


def _find_base(base: str) -> Adjacency:
    found = _BASE.match(base)
    if found is None:
        return Adjacency(1, _LONG_RUN)
    shape = _parse_dims(found["shape"])
    return adjacency_of_axis(shape, int(found["axis"]), int(found["group"]))


def _follow(adjacency: Adjacency, view: str) -> Adjacency:
    if step := Permutation.parse(view):
        return _permuted(adjacency, step)
    if found := _SLICE.match(view):
        before, after = _parse_dims(found["before"]), _parse_dims(found["after"])
        if len(before) == len(after):
            return _resized(adjacency, before, after)
    return adjacency


def _permuted(adjacency: Adjacency, step: Permutation) -> Adjacency:
    axis, inner = _locate(adjacency.stride, step.shape)
    position = step.order.index(axis)
    return Adjacency(inner * math.prod(step.result[position + 1 :]), adjacency.group)


def _resized(adjacency: Adjacency, before: Dims, after: Dims) -> Adjacency:
    axis, inner = _locate(adjacency.stride, before)
    return Adjacency(inner * math.prod(after[axis + 1 :]), adjacency.group)


def _locate(stride: int, shape: Dims) -> tuple[int, int]:
    """The dimension a flat stride runs along, and its multiple of that one's own."""
    for axis in reversed(range(len(shape))):
        own = math.prod(shape[axis + 1 :])
        if stride < own * shape[axis]:
            return axis, max(1, stride // own)
    return 0, 1
