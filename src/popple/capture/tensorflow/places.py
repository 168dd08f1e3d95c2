"""Where ops go: pipeline stages and chips, also of ops nobody put anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from popple.capture.tensorflow.builder import Mark
from popple.graph import Graph, Op, Phase


def with_places(
    graph: Graph, marks: Sequence[Mark], device_mapping: Sequence[int]
) -> Graph:
    """The graph with every op on a chip and in a stage.

    `device_mapping` lists the chips of stages; without it they are where their ops were
    put, or on the chip of their number.
    """
    stages = settle(graph.ops, [mark.stage for mark in marks])
    chips = settle(graph.ops, [mark.chip for mark in marks])
    if any(stages):
        # What the program was told about stages overrules what it put on chips itself.
        homes = {**_chips_of_stages(marks), **dict(enumerate(device_mapping))}
        chips = [homes.get(stage, stage) for stage in stages]
    places = zip(graph.ops, chips, stages, strict=True)
    ops = tuple(op.with_place(chip, stage) for op, chip, stage in places)
    num_chips = 1 + max(chips, default=0)
    execution = replace(graph.execution, num_chips=num_chips)
    return replace(graph, ops=ops, execution=execution)


def _chips_of_stages(marks: Sequence[Mark]) -> dict[int, int]:
    """Where the first op of each stage that was put on a chip was put."""
    found: dict[int, int] = {}
    for mark in marks:
        if mark.stage is not None and mark.chip is not None:
            found.setdefault(mark.stage, mark.chip)
    return found


def settle(ops: Sequence[Op], numbers: Sequence[int | None]) -> list[int]:
    """A number for every op: its own, else that of what it reads, else of its readers.

    A loss belongs behind the last thing it reads; sums of gradients where the gradient
    made last lies, which in the backward pass is the first stage.
    """
    if not any(numbers):
        return [0] * len(ops)
    found = list(numbers)
    made: dict[str, int] = {}
    for index, op in enumerate(ops):
        sources = [made[name] for name in op.inputs if name in made]
        if found[index] is None and sources:
            choose = min if op.phase is Phase.BACKWARD else max
            found[index] = choose(sources)
        if (number := found[index]) is not None:
            made.update((name, number) for name in op.outputs)
    # What reads nothing with a place (casts of weights, constants made by ops) goes to
    # its first reader, so that nothing is sent back from a later stage.
    wanted: dict[str, int] = {}
    for index in reversed(range(len(ops))):
        number = found[index]
        if number is None:
            readers = [wanted[name] for name in ops[index].outputs if name in wanted]
            number = found[index] = min(readers, default=0)
        for name in ops[index].inputs:
            wanted[name] = min(number, wanted.get(name, number))
    return [number or 0 for number in found]
