"""Pipelines: stages as functions, called in cycles that overlap micro-batches.

In cycle t stage s works on micro-batch t - s. With N stages and G micro-batches there
are N + G - 1 cycles: N - 1 that fill the pipeline, G - N + 1 equal ones (a loop) and
N - 1 that drain it. Where forward and backward stages take turns, a micro-batch enters
every second cycle and the loop goes over two of them. In a cycle all chips run their
stages at the same time, then all copies between chips follow as one exchange, whose
flows share the links. The exchange is the same in every cycle, also where stages are
idle: the framework's compilers make one function of it (graphcore/popart 3.3,
willow/src/popx/popprograms.cpp).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from popple.graph import Graph, Op, Phase
from popple.plan.lowering.emit import Emitter
from popple.plan.lowering.io_tiles import IoTiles, Traffic
from popple.plan.lowering.streams import Streams
from popple.plan.lowering.structure import Structure, by_chip, merged, repeat, sequence
from popple.plan.lowering.update import lower_update
from popple.program import Call, Parallel, Step

COPIES = "copies between IPUs"
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
    # Inference has no update to wait for: micro-batches of all iterations follow on.
    if not graph.is_training:
        cycles = stages.cycles(execution.device_iterations)
        return Structure(sequence(cycles, "pipeline"), stages.functions)
    cycles = sequence(stages.cycles(execution.accumulation), "pipeline")
    update = lower_update(graph, emitter, streams)
    iteration = sequence([cycles, *update], "iteration")
    count, each = execution.device_iterations, execution.accumulation
    return Structure(repeat(count, iteration, "iterations", each), stages.functions)


class _Stages:
    """The functions of a pipeline and how a cycle calls them."""

    def __init__(
        self, graph: Graph, emitter: Emitter, streams: Streams, io: IoTiles
    ) -> None:
        self.functions: dict[str, Step] = {}
        self._execution = graph.execution
        self._labels: dict[int, str] = {}
        self._chips: dict[int, int] = {}
        ops_by_stage = _group_by_stage(graph)
        for stage in range(self._execution.num_stages):
            traffic = io.traffic(
                [emitter.stream_in(*item) for item in streams.inputs.get(stage, ())],
                [emitter.stream_out(*item) for item in streams.outputs.get(stage, ())],
            )
            self._add_stage(stage, ops_by_stage.get(stage, []), emitter, traffic)
        self._add_copies([op for op in graph.ops if _is_staged_copy(op)], emitter)

    def cycles(self, num_micro_batches: int) -> list[Step]:
        """All cycles of `num_micro_batches` micro-batches."""
        interval = self._execution.interval
        # The cycle in which the last stage gets its first micro-batch.
        fill = self._execution.cycle_of(self._execution.num_stages - 1)
        total = (num_micro_batches - 1) * interval + fill + 1
        # Full cycles between filling and draining; less than two are not worth a loop.
        rounds = (total - 2 * fill) // interval
        if rounds < 2:
            return [self._cycle(time, num_micro_batches) for time in range(total)]
        steps = [self._cycle(time, num_micro_batches) for time in range(fill)]
        turns = range(fill, fill + interval)
        turn = [self._cycle(time, num_micro_batches) for time in turns]
        body = turn[0] if interval == 1 else sequence(turn, "turn")
        steps.append(repeat(rounds, body, "steady cycles", micro_batches=1))
        drain = range(fill + rounds * interval, total)
        return steps + [self._cycle(time, num_micro_batches) for time in drain]

    def _add_stage(
        self, stage: int, ops: list[Op], emitter: Emitter, traffic: Traffic
    ) -> None:
        work = [op for op in ops if not _is_staged_copy(op)]
        steps = emitter.steps_of(work)
        around = [*traffic.before, *steps, *traffic.after]
        self.functions[f"stage{stage}"] = sequence(around, f"stage{stage}")
        if beside := [*traffic.arrivals, *traffic.departures]:
            self.functions[f"traffic{stage}"] = sequence(beside, f"traffic{stage}")
        self._labels[stage] = _label(work)
        # All ops of a stage are on one chip; a stage without work may be anywhere.
        self._chips[stage] = work[0].chip if work else 0

    def _cycle(self, time: int, num_micro_batches: int) -> Step:
        """One cycle; micro-batches of a repeated one are those of its first round."""
        numbers = self._micro_batches(time, num_micro_batches)
        active = list(numbers)
        calls: defaultdict[int, list[Step]] = defaultdict(list)
        for stage in active:
            label = f"{self._labels[stage]}, stage {stage}"
            call = Call(f"stage{stage}", label, stage, numbers[stage])
            calls[self._chips[stage]].append(call)
        copies = self._copies_of(time)
        # Stages meet before the copies: a chip sends only what is complete.
        tail = [Call(copies, COPIES)] if copies in self.functions else []
        stages = self._with_traffic(by_chip(calls, "stages"), active)
        return sequence([stages, *tail], f"cycle{time}")

    def _micro_batches(self, time: int, count: int) -> dict[int, int]:
        """The stages that work in a cycle, and on which micro-batch each does."""
        execution = self._execution
        found: dict[int, int] = {}
        for stage in range(execution.num_stages):
            number, rest = divmod(time - execution.cycle_of(stage), execution.interval)
            # Stages that take turns rest in every second cycle.
            if rest == 0 and 0 <= number < count:
                found[stage] = number
        return found

    def _copies_of(self, time: int) -> str:
        """The function with the copies of a cycle; stages that take turns have two."""
        interval = self._execution.interval
        return _COPIES if interval == 1 else f"{_COPIES}{time % interval}"

    def _add_copies(self, copies: list[Op], emitter: Emitter) -> None:
        by_function: defaultdict[str, list[Step]] = defaultdict(list)
        for op in copies:
            name = self._copies_of(self._execution.cycle_of(op.stage))
            by_function[name] += emitter.op_steps(op)
        for name, steps in by_function.items():
            # They are nobody's, also where there is one: stages of both ends wait.
            together = replace(merged(steps, name), op="")
            self.functions[name] = sequence([together], name)

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
