"""Timeline: slices of work by chip over time, for viewers; pipelines show bubbles.

In: the timing of a program, and the phase of each op. Out: slices, one for
neighbouring leaf steps of the same op, and one for every phase in a pipeline's stage
and in rounds of a loop that are not laid out. Those of a chip add up to the cycles in
which it is busy; streams that run beside compute, on tiles of their own, lie above the
slices of what they run beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from popple.program import (
    Call,
    Control,
    Exchange,
    Execute,
    GlobalExchange,
    Parallel,
    Step,
    StreamCopy,
    label_of,
)
from popple.quick import quick
from popple.sim.timing import Timing
from popple.sim.unroll import UNNUMBERED, Span, Unroller

PhasesByOp = Mapping[str, str]
"""forward, backward or update, by the name of an op"""

COMPUTE, EXCHANGE, LINKS = "compute", "exchange", "links"
HOST, SYNC, UPDATE = "host", "sync", "update"
_TRAFFIC = (HOST, EXCHANGE)


@quick
@dataclass(frozen=True, slots=True)
class Slice:
    """A chip at work from one cycle to another.

    `stage` and `micro_batch` are -1 where the slice belongs to none. `phase` is that of
    the op (forward, backward, update), or what a step does that belongs to no op
    (`phase_without_op`). `op` is empty for a stage.
    """

    chip: int
    start_cycles: int
    end_cycles: int
    label: str
    stage: int = -1
    micro_batch: int = UNNUMBERED
    phase: str = ""
    op: str = ""


@dataclass(frozen=True)
class Timeline:
    """Slices of all chips, those of each chip in order of time.

    `busy_by_chip` and `total_cycles` are exact, also where slices stand for many
    rounds of a loop.
    """

    slices: tuple[Slice, ...]
    total_cycles: int
    busy_by_chip: tuple[int, ...]

    @property
    def idle_fraction(self) -> float:
        """Part of all chips' time spent waiting: the bubbles of a pipeline."""
        available = self.total_cycles * len(self.busy_by_chip)
        return 1 - sum(self.busy_by_chip) / available if available else 0.0


def make_timeline(
    timing: Timing, limit: int = 20_000, phases: PhasesByOp | None = None
) -> Timeline:
    """The timeline of a program, loops unrolled up to about `limit` slices."""
    maker = _SliceMaker(timing, phases or {})
    spans = Unroller(timing, limit, _is_call).spans()
    slices = tuple(_joined(s for span in spans for s in maker.slices_of(span)))
    return Timeline(slices, timing.cost.cycles, timing.busy_by_chip[0])


def _is_call(step: Step) -> bool:
    return isinstance(step, Call)


class _Segment(NamedTuple):
    """A part of a step in which all that a chip does is of one phase."""

    phase: str
    cycles: int


class _SliceMaker:
    """Turns spans into slices; the parts of each stage are found once."""

    def __init__(self, timing: Timing, phases: PhasesByOp) -> None:
        self._timing = timing
        self._phases = phases
        self._segments: dict[tuple[int, int], tuple[_Segment, ...]] = {}
        # By identity: steps of repeated layers share how long each chip is busy.
        self._busy: dict[int, list[tuple[int, int]]] = {}

    def slices_of(self, span: Span) -> Iterator[Slice]:
        """The slices of every chip that is busy in a span."""
        step = self._timing.steps[span.step_id].step
        for chip, busy in self._busy_chips(self._timing.busy_by_chip[span.step_id]):
            if isinstance(step, Call) and step.stage >= 0:
                yield from self._stage_slices(span, step, chip)
            elif isinstance(step, Control) and not self._is_op(step):
                yield from self._rounds_together(span, step, chip)
            else:
                yield self._op_slice(span, step, chip, busy)

    def _busy_chips(self, busy: tuple[int, ...]) -> list[tuple[int, int]]:
        """(chip, its cycles) of the chips that are busy."""
        if (known := self._busy.get(id(busy))) is None:
            known = [(chip, cycles) for chip, cycles in enumerate(busy) if cycles]
            self._busy[id(busy)] = known
        return known

    def _op_slice(self, span: Span, step: Step, chip: int, busy: int) -> Slice:
        op = step.label if isinstance(step, Call) else getattr(step, "op", "")
        label = op or label_of(step)
        start = span.start_cycles
        end = start + busy * span.num_rounds
        phase = self._phase_of(step)
        return Slice(chip, start, end, label, -1, span.micro_batch, phase, op)

    def _stage_slices(self, span: Span, call: Call, chip: int) -> Iterator[Slice]:
        """One slice for each phase of a stage, streams with the host apart."""
        start = span.start_cycles
        for phase, cycles in _phases_together(self._segments_of(span.step_id, chip)):
            # Streams are not numbered: those before and after the work of a stage
            # would each have the numbers of all micro-batches.
            number = UNNUMBERED if phase in _TRAFFIC else span.micro_batch
            label = f"{phase}, stage {call.stage}"
            end = start + cycles
            yield Slice(chip, start, end, label, call.stage, number, phase)
            start = end

    def _rounds_together(self, span: Span, step: Step, chip: int) -> Iterator[Slice]:
        """Rounds of a loop that are not laid out: one slice for each phase in them."""
        sums: dict[str, int] = {}
        for phase, cycles in self._segments_of(span.step_id, chip):
            sums[phase] = sums.get(phase, 0) + cycles * span.num_rounds
        start = span.start_cycles
        times = f" x {span.num_rounds}" if span.num_rounds > 1 else ""
        for phase, cycles in sums.items():
            label = f"{label_of(step)} {phase}{times}".lstrip()
            end = start + cycles
            # Copies after a pipeline's cycle are of several micro-batches.
            number = UNNUMBERED if phase == LINKS else span.micro_batch
            yield Slice(chip, start, end, label, -1, number, phase)
            start = end

    def _segments_of(self, step_id: int, chip: int) -> tuple[_Segment, ...]:
        """What a chip does in a step, by phase; adds up to its busy cycles."""
        key = step_id, chip
        if key not in self._segments:
            self._segments[key] = _merged(self._walk(step_id, chip))
        return self._segments[key]

    def _walk(self, step_id: int, chip: int) -> Iterator[_Segment]:
        timing = self._timing
        step, parts = timing.steps[step_id].step, timing.parts[step_id]
        busy = timing.busy_by_chip[step_id][chip]
        if not busy:
            return
        if self._is_op(step) or not isinstance(step, Control):
            yield _Segment(self._phase_of(step), busy)
        elif isinstance(step, Parallel):
            # As `Timing.busy_by_chip` has it: what a chip does beside is not counted.
            longest = max(parts, key=lambda part: timing.busy_by_chip[part[0]][chip])
            yield from self._segments_of(longest[0], chip)
        else:
            for part, times in parts:
                for phase, cycles in self._segments_of(part, chip):
                    yield _Segment(phase, cycles * times)

    def _is_op(self, step: Step) -> bool:
        return isinstance(step, Call) and step.label in self._phases

    def _phase_of(self, step: Step) -> str:
        """The phase of the op of a call or leaf, else what the leaf does."""
        op = step.label if isinstance(step, Call) else getattr(step, "op", "")
        return self._phases.get(op) or phase_without_op(step)


def phase_without_op(step: Step) -> str:
    """What a step does that belongs to no op.

    That is the class of its time (compute, exchange, links, host, sync), except for
    merged collectives, which are part of the update.
    """
    if isinstance(step, Control):
        return ""
    if isinstance(step, StreamCopy):
        return HOST
    if isinstance(step, Exchange):
        return EXCHANGE
    if isinstance(step, GlobalExchange):
        return LINKS if step.replicas == 1 else UPDATE
    return COMPUTE if isinstance(step, Execute) else SYNC


def _phases_together(segments: Iterable[_Segment]) -> list[_Segment]:
    """Segments of one phase as one, where the first of them is; streams stay apart.

    Ops of two phases may take turns in a stage, which has each micro-batch once in each
    phase all the same.
    """
    found: list[_Segment] = []
    places: dict[str, int] = {}
    for each in segments:
        if each.phase in _TRAFFIC or each.phase not in places:
            places[each.phase] = len(found)
            found.append(each)
        else:
            place = places[each.phase]
            found[place] = _Segment(each.phase, found[place].cycles + each.cycles)
    return found


def _merged(segments: Iterable[_Segment]) -> tuple[_Segment, ...]:
    """Neighbours of one phase as one."""
    found: list[_Segment] = []
    for each in segments:
        if found and found[-1].phase == each.phase:
            found[-1] = _Segment(each.phase, found[-1].cycles + each.cycles)
        else:
            found.append(each)
    return tuple(found)


def _joined(slices: Iterable[Slice]) -> Iterator[Slice]:
    """Slices with neighbours on a chip that differ in nothing but time as one."""
    # One slice may be open on every chip, since spans of several chips are interleaved.
    open_slices: dict[int, Slice] = {}
    for each in slices:
        last = open_slices.get(each.chip)
        if last is not None and _continues(last, each):
            open_slices[each.chip] = replace(last, end_cycles=each.end_cycles)
            continue
        if last is not None:
            yield last
        open_slices[each.chip] = each
    yield from open_slices.values()


def _continues(last: Slice, following: Slice) -> bool:
    """Whether a slice goes on with the leaf steps of the one before it."""
    return (
        last.end_cycles == following.start_cycles
        and max(last.stage, following.stage) < 0
        and _what(last) == _what(following)
    )


def _what(each: Slice) -> tuple[str, str, int]:
    return each.label, each.phase, each.micro_batch
