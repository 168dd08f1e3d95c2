"""Small machines and vectors for hand-derived numbers.

A Bow chip: 6 workers, 4 B a cycle, 127 cycles of exchange latency, an internal sync of
10 + 58 = 68 cycles, 1.85 GHz.
"""

from __future__ import annotations

from dataclasses import replace

from popple.program import (
    Codelet,
    ComputeSet,
    Direction,
    Exchange,
    Execute,
    Program,
    Step,
    StreamCopy,
    TileVector,
    Variable,
    VertexGroup,
)
from popple.target import Chip, Target, load_system

SYNC = 68
LATENCY = 127


def make_target(num_chips: int = 1, tiles_per_chip: int = 4, **chip: int) -> Target:
    """Chips of a Bow-2000 with few tiles and, if wanted, other constants."""
    system = load_system("bow-2000")
    few = replace(system.chip, num_tiles=tiles_per_chip, **chip)
    return Target(replace(system, chip=few), num_chips)


def bow_chip() -> Chip:
    return load_system("bow").chip


def tiles(*values: int) -> TileVector:
    """One value per tile."""
    return TileVector.of((1, value) for value in values)


def compute(name: str, *cycles: int, op: str = "") -> Execute:
    """One supervisor-timed vertex of so many cycles on each tile that has any."""
    by_tile = tiles(*cycles)
    group = VertexGroup(Codelet("c"), by_tile.presence(), by_tile)
    return Execute(ComputeSet(name, (group,)), op=op)


def use(
    reads: tuple[str, ...] = (), writes: tuple[str, ...] = (), num_tiles: int = 4
) -> Exchange:
    """A leaf that costs nothing and uses variables."""
    nothing = TileVector.zeros(num_tiles)
    return Exchange("use", nothing, nothing, reads=reads, writes=writes)


def to_host(*num_bytes: int) -> StreamCopy:
    return StreamCopy("out", Direction.TO_HOST, tiles(*num_bytes))


def one_chip(main: Step, *variables: Variable, **functions: Step) -> Program:
    """A program on one chip of four tiles."""
    return Program("p", 1, 4, {v.name: v for v in variables}, main, functions)


def two_chips(main: Step, *variables: Variable, **functions: Step) -> Program:
    """A program on two chips of two tiles."""
    return Program("p", 2, 2, {v.name: v for v in variables}, main, functions)
