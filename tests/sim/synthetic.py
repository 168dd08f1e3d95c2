"""A large made-up program: many small ops on several chips, like an unrolled model."""

from __future__ import annotations

import time
from dataclasses import replace

from popple.program import (
    Codelet,
    ComputeSet,
    Exchange,
    Execute,
    Program,
    Repeat,
    Sequence,
    Step,
    Thread,
    TileVector,
    Variable,
    VertexGroup,
)
from popple.sim import simulate
from popple.target import Target, load_system

CODELETS = tuple(
    Codelet(f"codelet{i}", Thread.MULTI, 100 + 4 * i, 16) for i in range(40)
)


def make_program(
    num_ops: int, num_chips: int, tiles_per_chip: int, rounds: int = 8
) -> Program:
    """`num_ops` ops of an exchange and a compute set, each with one result."""
    variables: dict[str, Variable] = {}
    steps: list[Step] = []
    for index in range(num_ops):
        name, chip = f"v{index}", index * num_chips // num_ops
        elements = 1_000 + 7_919 * (index % 197)
        vector = TileVector.spread(4 * elements, tiles_per_chip, tiles_per_chip, 8)
        placed = vector.shifted(chip * tiles_per_chip, num_chips * tiles_per_chip)
        variables[name] = Variable(name, placed, is_always_live=index % 10 == 0)
        steps += _op_steps(index, placed, f"v{max(0, index - 1 - index % 30)}")
    body = Sequence(tuple(steps))
    return Program(
        "synthetic", num_chips, tiles_per_chip, variables, Repeat(rounds, body)
    )


def _op_steps(index: int, placed: TileVector, source: str) -> tuple[Step, Step]:
    target, op = f"v{index}", f"op{index}"
    codelet = CODELETS[index % len(CODELETS)]
    group = VertexGroup(codelet, placed.presence(), placed, placed)
    move = Exchange(f"{op}/move", placed, placed, placed.presence(), False, (source,))
    work = Execute(ComputeSet(f"{op}/work", (group,)), (source,), (target,), op)
    return replace(move, op=op), work


def make_target(num_chips: int, tiles_per_chip: int) -> Target:
    """A Bow-2000 whose chips have any number of tiles."""
    system = load_system("bow-2000")
    chip = replace(system.chip, num_tiles=tiles_per_chip)
    return Target(replace(system, chip=chip), num_chips)


def measure_seconds(num_ops: int, tiles_per_chip: int) -> float:
    """Wall time of one simulation on four chips, for use by hand and benchmarks."""
    program = make_program(num_ops, 4, tiles_per_chip)
    target = make_target(4, tiles_per_chip)
    start = time.perf_counter()
    simulate(program, target)
    return time.perf_counter() - start


if __name__ == "__main__":
    for tiles in (1472, 14720):
        print(f"{tiles} tiles per chip: {measure_seconds(10_000, tiles):.2f} s")
