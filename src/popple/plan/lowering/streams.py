"""Host traffic the graph implies: inputs streamed to their readers, outputs back.

An input is streamed to every chip that reads it, in the stage that reads it first
there; an output leaves the chip and stage that computed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from popple.graph import Graph, Op, Phase, Role
from popple.plan.lowering.plan_ops import PlannedOps, source_chip

UPDATE_STAGE = -1
"""Stands for the update phase, which belongs to no pipeline stage."""

Item = tuple[str, int]
"""(value, chip)"""


@dataclass(frozen=True)
class Streams:
    """What is streamed in at the start and out at the end of each stage."""

    inputs: Mapping[int, list[Item]]
    outputs: Mapping[int, list[Item]]

    def all_in(self) -> list[Item]:
        """Inputs of all stages of a micro-batch."""
        return _without_update(self.inputs)

    def all_out(self) -> list[Item]:
        """Outputs of all stages of a micro-batch."""
        return _without_update(self.outputs)


def find_streams(graph: Graph, planned: PlannedOps) -> Streams:
    """The streams of a graph, by stage."""
    return Streams(_find_inputs(graph), _find_outputs(graph, planned))


def _find_inputs(graph: Graph) -> dict[int, list[Item]]:
    found: defaultdict[int, list[Item]] = defaultdict(list)
    seen: set[Item] = set()
    for op in graph.ops:
        for name in op.inputs:
            # Views of an input are the same bytes: they are streamed once.
            item = (graph.root(name), source_chip(op))
            if graph.values[item[0]].role is Role.INPUT and item not in seen:
                seen.add(item)
                found[_stage_of(op)].append(item)
    return dict(found)


def _find_outputs(graph: Graph, planned: PlannedOps) -> dict[int, list[Item]]:
    makers = {name: op for op in graph.ops for name in op.outputs}
    found: defaultdict[int, list[Item]] = defaultdict(list)
    # A value that no op makes, an input handed back, leaves with the last stage.
    last = max((op.stage for op in graph.ops), default=0)
    for name in graph.outputs:
        maker = makers.get(name)
        stage = _stage_of(maker) if maker else last
        chip = maker.chip if maker else planned.chips.get(graph.root(name), 0)
        found[stage].append((name, chip))
    return dict(found)


def _stage_of(op: Op) -> int:
    return UPDATE_STAGE if op.phase is Phase.UPDATE else op.stage


def _without_update(items: Mapping[int, list[Item]]) -> list[Item]:
    stages = sorted(stage for stage in items if stage != UPDATE_STAGE)
    return [item for stage in stages for item in items[stage]]
