"""A matrix times a vector in hand-written vertices, one dot product each.

Every row of the matrix is cut into pieces; the vertices of all pieces are spread evenly
over the tiles, the first piece of all rows first. A second step adds up each row's
partial sums. Vertices are C++, so their cycles are counted: a load of each operand and
one instruction for each operation, in loops that step through memory for free.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from popple.program import (
    Codelet,
    ComputeSet,
    Execute,
    PlacedVertex,
    Program,
    Sequence,
    Thread,
    vertex_groups,
)
from popple.target import Target

_DOT = 4
"""Of one element: two loads, a product, a sum."""
_SUM = 2
_VERTEX = 20
"""Instructions to unpack the state of a vertex and to set up its loop; estimate."""


def matvec(num_rows: int, num_columns: int, num_pieces: int, target: Target) -> Program:
    """The compute steps of the product, each row cut into `num_pieces`."""
    length = -(-num_columns // num_pieces)
    steps = (
        _spread("dot", num_rows * num_pieces, _DOT * length, target),
        _spread("sum", num_rows, _SUM * num_pieces, target),
    )
    return Program("matvec", 1, target.chip.num_tiles, {}, Sequence(steps))


def _spread(name: str, count: int, instructions: int, target: Target) -> Execute:
    codelet = Codelet(name, Thread.WORKER)
    tiles: Iterable[int] = np.arange(count) * target.chip.num_tiles // count
    vertices = (
        PlacedVertex(codelet, int(tile), instructions + _VERTEX) for tile in tiles
    )
    groups = vertex_groups(vertices, target.chip.num_tiles)
    return Execute(ComputeSet(name, groups), op=name)
