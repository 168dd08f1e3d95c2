"""The text of layouts, read back: for tests, notes and golden files.

    grouped[64,128/1:16|out g1f1x4k1i2o8s1.1]>view[8192:128x64,64x1+0]

`str` writes it, and no rule decides anything by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from popple.errors import PlanError
from popple.plan.layout.layout import (
    Flat,
    Grouped,
    Layout,
    Named,
    Order,
    Part,
    Reduced,
    Ring,
)
from popple.plan.layout.tiles import ConvTiles, JointTiles, PoolTiles, Tiles
from popple.plan.layout.views import Dims, Step, Unknown, View

_LINEAR = re.compile(r"linear(?:\+(\d+))?")
_GROUPED = re.compile(r"grouped\[([\d,]*)/(\d+):(\d+)\|(.*)\]")
_NESTED = re.compile(r"(reduced|part|ring)(?:\[([\d,]*)\])?\((.*)\)")
_NAMED = re.compile(r"([a-z ]+)(?:\[([\d,]*)\])?")
_CONV = re.compile(
    r"(\w+) (swap )?g(\d+)f([\dx]*)k(\d+)i(\d+)o(\d+)s(\d+)\.(\d+)(?: from tile (\d+))?"
)
_JOINT = re.compile(r"joint g(\d+)i(\d+)o(\d+)")
_POOL = re.compile(r"pool (\d+)")
_VIEW = re.compile(r"view\[(\d+):([\dx,]*)\+(\d+|\?)\]")
_UNKNOWN = re.compile(r"(\w+)\[([\d,]*):([\d,]*)(?:@([\d,]*))?\]")


def parse_layout(text: str) -> Layout:
    """The layout that `str` wrote as `text`."""
    # The views were normal when they were written, so they are not folded again.
    order, *views = _split(text)
    return Layout(_parse_order(order), tuple(map(_parse_view, views)))


def _split(text: str) -> Iterator[str]:
    """The order and the views, those of layouts inside it left with it."""
    depth = start = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == ">" and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _parse_order(text: str) -> Order:
    if found := _LINEAR.fullmatch(text):
        return Flat(int(found[1] or 0))
    if found := _GROUPED.fullmatch(text):
        shape, axis, group, tiles = found.groups()
        return Grouped(_dims(shape), int(axis), int(group), _parse_tiles(tiles))
    if found := _NESTED.fullmatch(text):
        return _parse_nested(found[1], _dims(found[2] or ""), parse_layout(found[3]))
    if found := _NAMED.fullmatch(text):
        return Named(found[1], _dims(found[2] or ""))
    raise _unreadable(text)


def _parse_nested(kind: str, numbers: Dims, inner: Layout) -> Order:
    if kind == "reduced":
        return Reduced(inner, tuple(map(bool, numbers)))
    return Part(inner, numbers[0]) if kind == "part" else Ring(inner)


def _parse_tiles(text: str) -> Tiles:
    if found := _JOINT.fullmatch(text):
        return JointTiles(*map(int, found.groups()))
    if found := _POOL.fullmatch(text):
        return PoolTiles(int(found[1]))
    if (found := _CONV.fullmatch(text)) is None:
        raise _unreadable(text)
    role, swap, groups, field, *numbers, first_tile = found.groups()
    kernel, ins, outs, out_parts, in_parts = map(int, numbers)
    return ConvTiles(
        role,
        int(groups),
        _dims(field.replace("x", ",")),
        kernel,
        ins,
        outs,
        out_parts,
        in_parts,
        is_swapped=bool(swap),
        first_tile=int(first_tile or 0),
    )


def _parse_view(text: str) -> Step:
    if found := _VIEW.fullmatch(text):
        digits = [tuple(map(int, d.split("x"))) for d in found[2].split(",") if d]
        sizes, strides = (tuple(d[part] for d in digits) for part in (0, 1))
        offset = None if found[3] == "?" else int(found[3])
        return View(int(found[1]), sizes, strides, offset)
    if found := _UNKNOWN.fullmatch(text):
        source, result, place = (_dims(part or "") for part in found.groups()[1:])
        return Unknown(found[1], source, result, place)
    raise _unreadable(text)


def _dims(text: str) -> Dims:
    return tuple(int(dim) for dim in text.split(",") if dim)


def _unreadable(text: str) -> PlanError:
    return PlanError(
        f"{text!r} is no part of a layout.", remedy="Write it as str(layout) does."
    )
