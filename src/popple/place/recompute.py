"""Recomputation: the backward pass redoes forward work instead of keeping its results.

Only what enters a stage, and checkpoints, are then kept for the backward pass;
everything between is computed again when the backward stage needs it. The last stage,
which may be the only one, redoes what its checkpoints are made of and nothing behind
them: that backward work follows at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from popple.graph import Graph, Op, Phase, Redone, Role, Value
from popple.place.checkpoints import find_checkpoints
from popple.place.shard import with_inputs
from popple.quick import replaced

_SUFFIX = ".again"


Backward = Callable[[int], int]
"""The stage of the backward work of a forward stage."""


def is_recomputed(op: Op) -> bool:
    """Whether the op does forward work a second time."""
    return op.name.endswith(_SUFFIX)


@dataclass(frozen=True)
class Recompute:
    """For stages that take turns: forward and backward work have the same number."""

    redone: Redone | None = None
    """None is all work of a program in several stages, and none in one stage"""

    def apply(self, graph: Graph) -> Graph:
        """The graph with forward work done again before the backward work."""
        stages = {op.stage for op in graph.ops if op.phase is Phase.FORWARD}
        is_one = self.redone is None and len(stages) < 2
        if not graph.is_training or not stages or is_one:
            return graph
        kept = find_checkpoints(graph, self.redone or Redone.ALL, max(stages))
        return _recomputed(graph, kept, lambda stage: stage)


def recompute_stages(graph: Graph, num_forward: int, redone: Redone) -> Graph:
    """Redo forward ops in the mirrored backward stage."""
    last = num_forward - 1
    kept = find_checkpoints(graph, redone, last)
    return _recomputed(graph, kept, lambda stage: 2 * last - stage)


def _recomputed(graph: Graph, kept: frozenset[str], backward: Backward) -> Graph:
    made = {
        name: op
        for op in graph.ops
        if op.phase is Phase.FORWARD and op.name not in kept
        for name in op.outputs
    }
    # Only gradients of the same stage start recomputation: what another stage reads
    # was carried there.
    wanted = {
        name
        for op in graph.ops
        if op.phase is Phase.BACKWARD
        for name in op.inputs
        if name in made and op.stage == backward(made[name].stage)
    }
    if not wanted:
        return graph
    again = _needed_ops(made, wanted)
    clones, values = _clones(graph, again, backward)
    readers: list[Op] = []
    for op in graph.ops:
        reader, shared = _redirected(graph, op, made, again, backward)
        readers.append(reader)
        values += shared.values()
    execution = replace(graph.execution, recompute=True)
    result = graph.with_ops(_merged(readers, clones), values)
    return replace(result, execution=execution)


def _needed_ops(made: dict[str, Op], wanted: set[str]) -> dict[str, Op]:
    """Ops to redo by name: those that make wanted values out of what enters a stage."""
    again: dict[str, Op] = {}
    waiting = list(wanted)
    while waiting:
        source = made[waiting.pop()]
        if source.name in again:
            continue
        again[source.name] = source
        waiting += [
            n for n in source.inputs if n in made and made[n].stage == source.stage
        ]
    return again


def _clones(
    graph: Graph, again: dict[str, Op], backward: Backward
) -> tuple[dict[int, list[Op]], list[Value]]:
    """The ops to redo, by backward stage, and the values they make."""
    names: dict[int, set[str]] = {}  # what each stage makes again
    for op in again.values():
        names.setdefault(op.stage, set()).update(op.outputs)
    clones: dict[int, list[Op]] = {}
    values: list[Value] = []
    for op in graph.ops:
        if op.name not in again:
            continue
        stage = backward(op.stage)
        own = names[op.stage]
        outputs = tuple(f"{name}{_SUFFIX}" for name in op.outputs)
        clone = replaced(
            op,
            name=f"{op.name}{_SUFFIX}",
            inputs=tuple(_renamed(name, own) for name in op.inputs),
            outputs=outputs,
            phase=Phase.BACKWARD,
            stage=stage,
        )
        clones.setdefault(stage, []).append(clone)
        values += [_cloned_value(graph.values[n], own, graph) for n in op.outputs]
    return clones, values


def _renamed(name: str, names: set[str]) -> str:
    return f"{name}{_SUFFIX}" if name in names else name


def _cloned_value(value: Value, names: set[str], graph: Graph) -> Value:
    """A value made again; it must not overwrite a state a second time."""
    storage = value.storage
    # Running statistics, for example: the first forward pass has updated them already.
    if storage and graph.values[graph.root(storage)].role is Role.STATE:
        storage = ""
    return replaced(
        value, name=f"{value.name}{_SUFFIX}", storage=_renamed(storage, names)
    )


def _redirected(
    graph: Graph, op: Op, made: dict[str, Op], again: dict[str, Op], backward: Backward
) -> tuple[Op, dict[str, Value]]:
    """A backward op reading what its own stage computed again."""
    if op.phase is not Phase.BACKWARD:
        return op, {}
    renamed = {
        name: f"{name}{_SUFFIX}"
        for name in op.inputs
        if name in made
        and made[name].name in again
        and op.stage == backward(made[name].stage)
    }
    return with_inputs(graph, op, renamed)


def _merged(readers: list[Op], clones: dict[int, list[Op]]) -> list[Op]:
    """Redone ops stand right before the first backward op that needs them.

    So do those of graphcore/popart (willow/src/popx/irlowering.cpp): for every op
    behind the loss, its producers up to a checkpoint that have not been redone yet.
    Between two checkpoints, one layer at a time is in memory.
    """
    waiting = {
        name: clone
        for redone in clones.values()
        for clone in redone
        for name in clone.outputs
    }
    result: list[Op] = []
    for op in readers:
        if op.phase is Phase.BACKWARD:
            result += _taken(waiting, op)
        result.append(op)
    return result


def _taken(waiting: dict[str, Op], reader: Op) -> list[Op]:
    """What an op needs of the ops that wait, in their order; they wait no longer."""
    needed: set[str] = set()
    names = list(reader.inputs)
    while names:
        source = waiting.get(names.pop())
        if source is not None and source.name not in needed:
            needed.add(source.name)
            names += source.inputs
    if not needed:
        return []
    found = {op.name: op for op in waiting.values() if op.name in needed}
    for op in found.values():
        for name in op.outputs:
            del waiting[name]
    return list(found.values())
