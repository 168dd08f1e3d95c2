"""Codelets, vertices and compute sets: the work of one compute phase."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from popple.errors import ProgramError
from popple.program.tiles import TileVector
from popple.quick import quick


class Thread(enum.Enum):
    """Who runs a vertex, which decides what its estimate means.

    A worker vertex is estimated in worker cycles, one every `num_workers` tile cycles,
    and the vertices of a tile are dealt to the workers in turn. Multi and supervisor
    vertices are estimated in tile cycles and run one after the other.
    """

    WORKER = "worker"
    MULTI = "multi"
    SUPERVISOR = "supervisor"


@dataclass(frozen=True)
class Codelet:
    """A kind of vertex: its code is stored once on every tile that uses it."""

    name: str
    thread: Thread = Thread.MULTI
    code_bytes: int = 0
    state_bytes: int = 0
    source: str = ""


@quick
@dataclass(frozen=True, slots=True)
class VertexGroup:
    """Equal vertices on many tiles.

    `count_by_tile` vertices stand on a tile, each taking `cycles_by_tile` (worker or
    tile cycles, as the codelet's thread says) and doing `flops_by_tile`. Fields without
    a fixed size, such as lists, take `list_bytes` a vertex beside the codelet's state.
    """

    codelet: Codelet
    count_by_tile: TileVector
    cycles_by_tile: TileVector
    flops_by_tile: TileVector | None = None
    num_edges: int = 1
    list_bytes: int = 0

    def __post_init__(self) -> None:
        if len(self.count_by_tile) != len(self.cycles_by_tile):
            raise ProgramError(
                f"vertices of {self.codelet.name} are counted on "
                f"{len(self.count_by_tile)} tiles and timed on "
                f"{len(self.cycles_by_tile)}."
            )


@quick
@dataclass(frozen=True, slots=True)
class ComputeSet:
    """Vertices that run in one compute phase, in no particular order."""

    name: str
    vertices: tuple[VertexGroup, ...]


def worker_cycles(
    counts: Sequence[int], cycles: Sequence[int], num_workers: int
) -> int:
    """Worker cycles of the busiest worker when vertices are dealt out in turn.

    `counts[i]` vertices of `cycles[i]` each follow one another in the order given.
    """
    totals = [0] * num_workers
    first = 0
    for count, each in zip(counts, cycles, strict=True):
        # Dealing goes on where the previous group stopped, so groups must not be dealt
        # one by one from the first worker: that would load the first workers with every
        # remainder.
        whole, rest = divmod(count, num_workers)
        for index in range(num_workers):
            extra = (index - first) % num_workers < rest
            totals[index] += (whole + extra) * each
        first += count
    return max(totals)
