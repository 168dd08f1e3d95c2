"""Sharded execution: chips take turns, tensors are copied where they are needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from popple.graph import Graph, Op, Phase, Role, Strategy, Value
from popple.quick import replaced


@dataclass(frozen=True)
class Shard:
    """Ops keep the chips they have; copies are added between chips."""

    strategy: Strategy = Strategy.SHARDED

    def apply(self, graph: Graph) -> Graph:
        """The graph with a copy wherever a value is read on another chip."""
        chips = 1 + max((op.chip for op in graph.ops), default=0)
        strategy = self.strategy if chips > 1 else Strategy.SINGLE
        execution = replace(graph.execution, strategy=strategy, num_chips=chips)
        placed = replace(graph, execution=execution)
        return insert_copies(placed, graph.ops) if chips > 1 else placed


def insert_copies(graph: Graph, ops: tuple[Op, ...]) -> Graph:
    """`graph` with these ops, copying values to chips that read but do not hold them.

    Inputs are streamed straight to their readers and a constant costs nothing to hold
    twice; everything else goes over the links, once per reading chip and phase.
    """
    homes = given_homes(graph, ops)
    copies: dict[tuple[str, int, Phase], str] = {}
    result: list[Op] = []
    values: dict[str, Value] = {}
    for op in ops:
        renamed: dict[str, str] = {}
        for name in op.inputs:
            if op.kind == "chip_copy" or homes.get(name, op.chip) == op.chip:
                continue
            key = (name, op.chip, op.phase)
            if key not in copies:
                copy, value = _chip_copy(graph, name, homes[name], op)
                copies[key] = value.name
                result.append(copy)
                values[value.name] = value
            renamed[name] = copies[key]
        moved, shared = with_inputs(graph, op, renamed)
        result.append(moved)
        values |= shared
        homes.update((name, op.chip) for name in op.outputs)
    return graph.with_ops(result, values.values())


def given_homes(graph: Graph, ops: Iterable[Op]) -> dict[str, int]:
    """Chip of every weight and state: where the first of these ops reads it.

    What a copy reads lies on the chip it copies from.
    """
    homes: dict[str, int] = {}
    for op in ops:
        for name in op.inputs:
            if graph.values[name].role in (Role.WEIGHT, Role.STATE):
                homes.setdefault(name, op.source_chip)
    return homes


def _chip_copy(graph: Graph, name: str, source: int, reader: Op) -> tuple[Op, Value]:
    """The op that copies `name` from chip `source` to the reader's chip."""
    value = Value(
        f"{name}.to{reader.chip}.{reader.phase.value}{reader.stage}",
        graph.type_of(name),
    )
    attrs = {"source": source}
    op = reader.beside(value.name, "chip_copy", (name,), (value.name,), attrs)
    return op, value


def with_inputs(
    graph: Graph, op: Op, renamed: dict[str, str]
) -> tuple[Op, dict[str, Value]]:
    """The op reading renamed values; results that shared their memory follow."""
    if not renamed:
        return op, {}
    shared = {
        name: replaced(value, storage=renamed[value.storage])
        for name in op.outputs
        if (value := graph.values[name]).storage in renamed
    }
    inputs = tuple(renamed.get(name, name) for name in op.inputs)
    return replaced(op, inputs=inputs), shared
