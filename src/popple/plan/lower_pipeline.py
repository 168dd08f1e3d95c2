"""Pipelines: stages as functions, called in cycles that overlap micro-batches.

In cycle t stage s works on micro-batch t - s. With N stages and G micro-batches there
are N + G - 1 cycles: N - 1 that fill the pipeline, G - N + 1 equal ones (a loop) and
N - 1 that drain it. In a cycle all chips run their stages at the same time, then all
copies between chips follow as one exchange, whose flows share the links. The exchange
is the same in every cycle, also where stages are idle: the framework's compilers make
one function of it (graphcore/popart 3.3, willow/src/popx/popprograms.cpp).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from popple.graph import Graph, Op, Phase
from popple.plan.emit import Emitter
from popple.plan.io_tiles import IoTiles, Traffic
from popple.plan.lower_update import lower_update
from popple.plan.streams import Streams
from popple.plan.structure import Structure, by_chip, merged, repeat, sequence
from popple.program import Call, Parallel, Step

_COPIES = "copies"
_LABELS = {
    (True, False): "forward",
    (False, True): "backward",
    (True, True): "forward and backward",
}


def lower_pipeline(
    graph: Graph, emitter: Emitter, streams: Streams, io: IoTiles
) -> Structure:
    """The cycles of a pipeline, then the update; inference overlaps iterations."""
    stages = _Stages(graph, emitter, streams, io)
    execution = graph.execution
    if not graph.is_training:
        cycles = stages.cycles(execution.device_iterations)
        return Structure(sequence(cycles, "pipeline"), stages.functions)
    cycles = sequence(stages.cycles(execution.accumulation), "pipeline")
    update = lower_update(graph, emitter, streams)
    iteration = sequence([cycles, *update], "iteration")
    main = repeat(execution.device_iterations, iteration, "iterations")
    return Structure(main, stages.functions)


class _Stages:
    """The functions of a pipeline and how a cycle calls them."""

    def __init__(
        self, graph: Graph, emitter: Emitter, streams: Streams, io: IoTiles
    ) -> None:
        self.functions: dict[str, Step] = {}
        self._num_stages = graph.execution.num_stages
        self._labels: dict[int, str] = {}
        self._chips: dict[int, int] = {}
        ops_by_stage = _group_by_stage(graph)
        for stage in range(self._num_stages):
            traffic = io.traffic(
                [emitter.stream_in(*item) for item in streams.inputs.get(stage, ())],
                [emitter.stream_out(*item) for item in streams.outputs.get(stage, ())],
            )
            self._add_stage(stage, ops_by_stage.get(stage, []), emitter, traffic)
        if copies := [op for op in graph.ops if _is_staged_copy(op)]:
            steps = [step for op in copies for step in emitter.op_steps(op)]
            self.functions[_COPIES] = sequence([merged(steps, _COPIES)], _COPIES)

    def cycles(self, num_micro_batches: int) -> list[Step]:
        """All cycles of `num_micro_batches` micro-batches."""
        fill = self._num_stages - 1
        total = num_micro_batches + fill
        steady = num_micro_batches - fill
        if steady < 2:
            return [self._cycle(time, num_micro_batches) for time in range(total)]
        steps = [self._cycle(time, num_micro_batches) for time in range(fill)]
        steps.append(
            repeat(steady, self._cycle(fill, num_micro_batches), "steady cycles")
        )
        drain = range(fill + steady, total)
        return steps + [self._cycle(time, num_micro_batches) for time in drain]

    def _add_stage(
        self, stage: int, ops: list[Op], emitter: Emitter, traffic: Traffic
    ) -> None:
        work = [op for op in ops if not _is_staged_copy(op)]
        steps = [step for op in work for step in emitter.op_steps(op)]
        around = [*traffic.before, *steps, *traffic.after]
        self.functions[f"stage{stage}"] = sequence(around, f"stage{stage}")
        if beside := [*traffic.arrivals, *traffic.departures]:
            self.functions[f"traffic{stage}"] = sequence(beside, f"traffic{stage}")
        self._labels[stage] = _label(work)
        self._chips[stage] = work[0].chip if work else 0

    def _cycle(self, time: int, num_micro_batches: int) -> Step:
        """One cycle; a repeated one is numbered by its first round."""
        active = [
            stage
            for stage in range(self._num_stages)
            if 0 <= time - stage < num_micro_batches
        ]
        calls: defaultdict[int, list[Step]] = defaultdict(list)
        for stage in active:
            label = f"{self._labels[stage]} {stage}"
            call = Call(f"stage{stage}", label, stage, time - stage)
            calls[self._chips[stage]].append(call)
        tail = [Call(_COPIES, "copy")] if _COPIES in self.functions else []
        stages = self._with_traffic(by_chip(calls, "stages"), active)
        return sequence([stages, *tail], f"cycle{time}")

    def _with_traffic(self, stages: Step, active: list[int]) -> Step:
        """Stages while host traffic runs on the I/O tiles, if there is any."""
        names = [name for s in active if (name := f"traffic{s}") in self.functions]
        if not names:
            return stages
        traffic = sequence([Call(name, "traffic") for name in names], "traffic")
        return Parallel((stages, traffic), "overlap")


def _is_staged_copy(op: Op) -> bool:
    return op.kind == "chip_copy" and op.phase is not Phase.UPDATE


def _group_by_stage(graph: Graph) -> Mapping[int, list[Op]]:
    groups: defaultdict[int, list[Op]] = defaultdict(list)
    for op in graph.ops:
        if op.phase is not Phase.UPDATE:
            groups[op.stage].append(op)
    return groups


def _label(ops: list[Op]) -> str:
    phases = {op.phase for op in ops}
    return _LABELS.get((Phase.FORWARD in phases, Phase.BACKWARD in phases), "idle")
