"""Builders for programs written by hand: vertices placed one by one, linear mappings.

In: single vertices with their tiles and estimates, or tensors by their number of
elements. Out: the groups and vectors that compute sets and variables are made of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from popple.errors import ProgramError
from popple.program.tiles import TileVector
from popple.program.vertices import Codelet, VertexGroup
from popple.units import ceil_div

# Poputil's rule: whole 64-bit words, and no tile with less than 128 bytes.
_GRAIN_BYTES = 8
_MIN_TILE_BYTES = 128


@dataclass(frozen=True)
class PlacedVertex:
    """One vertex on one tile; `cycles` as the codelet's thread counts them."""

    codelet: Codelet
    tile: int
    cycles: int
    flops: int = 0
    num_edges: int = 1


_Key: TypeAlias = tuple[int, Codelet, int]
"""(position in the order of the tile, codelet, number of edges)"""


def vertex_groups(
    vertices: Iterable[PlacedVertex], num_tiles: int
) -> tuple[VertexGroup, ...]:
    """Groups that stand for the given vertices, on every tile in the given order.

    Neighbours on a tile that are equal become one entry of a group. The order is kept
    because workers take vertices in turn, so it decides which worker has most to do.
    """
    # A group holds at most one entry of a tile, so the position in the tile's order is
    # part of the key: a codelet that returns after another one on the same tile begins
    # a new group.
    groups: dict[_Key, dict[int, tuple[int, PlacedVertex]]] = defaultdict(dict)
    last: dict[int, tuple[_Key, PlacedVertex]] = {}
    for vertex in vertices:
        _check_tile(vertex, num_tiles)
        key, previous = last.get(vertex.tile, ((-1, vertex.codelet, 0), None))
        if vertex != previous:
            key = (key[0] + 1, vertex.codelet, vertex.num_edges)
        count = groups[key].get(vertex.tile, (0, vertex))[0]
        groups[key][vertex.tile] = (count + 1, vertex)
        last[vertex.tile] = (key, vertex)
    ordered = sorted(groups.items(), key=lambda item: item[0][0])
    return tuple(_make_group(key, placed, num_tiles) for key, placed in ordered)


def linear_mapping(
    num_elements: int,
    element_bytes: int,
    num_tiles: int,
    *,
    grain_elements: int = 0,
    min_elements_per_tile: int = 0,
) -> TileVector:
    """Bytes by tile of a tensor spread in order over as many tiles as sensible.

    The rule of poputil's linear mapping: grains of one 64-bit word (or
    `grain_elements`), at least 128 bytes (or `min_elements_per_tile`) on a tile.
    """
    if num_elements < 0 or element_bytes < 1 or num_tiles < 1:
        raise ProgramError(
            f"cannot map {num_elements} elements of {element_bytes} bytes "
            f"to {num_tiles} tiles."
        )
    grain = grain_elements or max(1, _GRAIN_BYTES // element_bytes)
    minimum = min_elements_per_tile or ceil_div(_MIN_TILE_BYTES, element_bytes)
    grains = ceil_div(num_elements, grain)
    if not grains:
        return TileVector.zeros(num_tiles)
    # Both bounds ask for more grains on a tile: the tiles there are, and the least
    # bytes that are worth a tile.
    most_tiles = max(1, grains // ceil_div(minimum, grain))
    per_tile = max(ceil_div(grains, num_tiles), ceil_div(grains, most_tiles))
    used = ceil_div(grains, per_tile)
    # Bounds of equal shares rounded down, so sizes differ by one grain and long and
    # short shares alternate instead of all long ones coming first.
    bounds = np.arange(used + 1, dtype=np.int64) * grains // used * grain
    bounds[-1] = num_elements
    mapped = TileVector.from_array(np.diff(bounds) * element_bytes)
    return mapped.shifted(0, num_tiles)


def _check_tile(vertex: PlacedVertex, num_tiles: int) -> None:
    if not 0 <= vertex.tile < num_tiles:
        what = f"a vertex of {vertex.codelet.name} is on tile {vertex.tile}"
        raise ProgramError(f"{what}, but there are {num_tiles} tiles.")


def _make_group(
    key: _Key, placed: Mapping[int, tuple[int, PlacedVertex]], num_tiles: int
) -> VertexGroup:
    _, codelet, num_edges = key
    tiles = list(placed)
    rows = np.zeros((3, num_tiles), dtype=np.int64)
    rows[:, tiles] = [
        [count for count, _ in placed.values()],
        [vertex.cycles for _, vertex in placed.values()],
        [vertex.flops for _, vertex in placed.values()],
    ]
    count, cycles, flops = (TileVector.from_array(row) for row in rows)
    return VertexGroup(
        codelet, count, cycles, None if flops.is_zero else flops, num_edges
    )
