"""Tensors off the chip: loaded before they are read, stored after they are written.

Such a tensor has memory on the chip only from a load to the last use of it in the same
part of the program: a stage of the micro-batch, or the update. So weights are loaded
by every stage that reads them, optimiser state around the update, accumulators around
each sum and again for the update. Stashed activations are loaded when restored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.graph import Graph, Op, Phase, Role, Value, get_op
from popple.place.update_weights import gradient_of

_Part = tuple[Phase, int]


@dataclass(frozen=True)
class Offload:
    """Which tensors lie off the chip: those of so many elements or more.

    None keeps a kind of tensor on the chip. Runs when chips and stages are settled.
    """

    weights: int | None = None
    states: int | None = None
    accumulators: int | None = None
    stashes: int | None = None

    def apply(self, graph: Graph) -> Graph:
        """The graph with loads and stores."""
        if self.stashes is not None:
            graph = _offload_stashes(graph, self.stashes)
        off_chip = self._off_chip(graph)
        return _Loads(graph, off_chip).run() if off_chip else graph

    def _off_chip(self, graph: Graph) -> frozenset[str]:
        """Names of the weights and states that lie off the chip."""
        weights = (value.name for value in graph.with_role(Role.WEIGHT))
        limits: dict[str, int | None] = dict.fromkeys(weights, self.weights)
        for op in graph.ops:
            if gradient_of(op):
                limits |= dict.fromkeys(op.inputs[2:], self.states)
            if op.kind == "accumulate":
                limits[op.inputs[0]] = self.accumulators
        return frozenset(
            name
            for name, least in limits.items()
            if least is not None and graph.type_of(name).num_elements >= least
        )


def _offload_stashes(graph: Graph, min_elements: int) -> Graph:
    """Entries of rings go off the chip; nothing of a ring is left on it."""
    ops: list[Op] = []
    for op in graph.ops:
        entry = op.inputs[-1] if op.kind == "stash" else (*op.outputs, "")[0]
        is_ring = op.kind in ("stash", "restore")
        if not is_ring or graph.type_of(entry).num_elements < min_elements:
            ops.append(op)
        elif op.kind == "stash":
            ops.append(_transfer(op, "remote_store", entry, reads=(entry,)))
        else:
            ops.append(_transfer(op, "remote_load", entry, writes=(entry,)))
    return graph.with_ops(ops)


class _Loads:
    """The graph being rewritten, and what each part has in memory."""

    def __init__(self, graph: Graph, off_chip: frozenset[str]) -> None:
        self._graph = graph
        self._off_chip = off_chip
        self._held: dict[tuple[str, _Part], str] = {}
        self._values: dict[str, Value] = {}
        # A part stores a tensor once, after the last op that writes to it.
        self._last = {
            (graph.root(name), _part_of(op)): name
            for op in graph.ops
            for name in op.outputs
            if self._is_off_chip(name) and not get_op(op.kind).is_view
        }

    def run(self) -> Graph:
        """The rewritten graph."""
        ops = [new for op in self._graph.ops for new in self._rewritten(op)]
        return self._graph.with_ops(ops, self._values.values())

    def _is_off_chip(self, name: str) -> bool:
        return self._graph.root(name) in self._off_chip

    def _rewritten(self, op: Op) -> list[Op]:
        part = _part_of(op)
        loads: list[Op] = []
        inputs: list[str] = []
        for name in op.inputs:
            if self._is_off_chip(name) and (name, part) not in self._held:
                loads.append(self._load(name, op, tuple(inputs)))
            inputs.append(self._held.get((name, part), name))
        for name in filter(self._is_off_chip, op.outputs):
            self._hold_result(name, op, inputs)
        moved = replace(op, inputs=tuple(inputs))
        return [*loads, moved, *self._stores(op)]

    def _load(self, name: str, op: Op, before: tuple[str, ...]) -> Op:
        """Bring a value into the part of an op that reads it.

        State is laid out like the weight, which stands before it; an accumulator
        like its gradient.
        """
        part = _part_of(op)
        again = f"{name}.in.{part[0].value}{part[1]}"
        self._values[again] = Value(again, self._graph.type_of(name))
        self._held[name, part] = again
        like = op.inputs[1:2] if op.kind == "accumulate" else before[:1]
        load = _transfer(op, "remote_load", again, like, (again,))
        # What a copy sends is loaded where it comes from, not where it goes.
        return replace(load, chip=op.source_chip)

    def _hold_result(self, name: str, op: Op, inputs: list[str]) -> None:
        """A result in the memory of what was loaded."""
        root = self._graph.root(name)
        of_same = [
            new
            for old, new in zip(op.inputs, inputs, strict=True)
            if self._graph.root(old) == root
        ]
        storage = of_same[0] if of_same else ""
        self._values[name] = replace(self._graph.values[name], storage=storage)
        self._held[name, _part_of(op)] = name

    def _stores(self, op: Op) -> list[Op]:
        """What this op is the last of its part to write."""
        last = [
            name
            for name in op.outputs
            if self._last.get((self._graph.root(name), _part_of(op))) == name
        ]
        return [_transfer(op, "remote_store", name, reads=(name,)) for name in last]


def _part_of(op: Op) -> _Part:
    # The update runs once for all micro-batches, so it is one part whatever the stage.
    return (op.phase, -1 if op.phase is Phase.UPDATE else op.stage)


def _transfer(
    op: Op,
    kind: str,
    name: str,
    reads: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
) -> Op:
    """A load or a store beside an op."""
    return op.beside(f"{name}.{kind}", kind, reads, writes)
