"""Timeline: slices of work by chip over time, for viewers; pipelines show bubbles.

In: the timing of a program. Out: slices, one for each call of a function and one for
neighbouring leaf steps of the same op.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from popple.program import (
    Call,
    Control,
    Exchange,
    Execute,
    GlobalExchange,
    Step,
    StreamCopy,
    label_of,
)
from popple.sim.timing import Timing
from popple.sim.unroll import Span, Unroller

# In order of precedence: a name may hold several of these words, as that of the
# all-reduce of a gradient does.
_PHASES = {
    "update": ("update", "optimiser", "optimizer", "all_reduce", "allreduce"),
    "backward": ("backward", "bwd", "grad"),
    "forward": ("forward", "fwd"),
}


@dataclass(frozen=True)
class Slice:
    """A chip at work from one cycle to another.

    `stage` and `micro_batch` are -1 where the program does not say. `phase` is guessed
    from the label (forward, backward, update), else it is what the step does (compute,
    exchange, link, host, sync), else empty.
    """

    chip: int
    start_cycles: int
    end_cycles: int
    label: str
    stage: int = -1
    micro_batch: int = -1
    phase: str = ""


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


def make_timeline(timing: Timing, limit: int = 20_000) -> Timeline:
    """The timeline of a program, loops unrolled up to about `limit` slices."""
    spans = Unroller(timing, limit, _is_call).spans()
    slices = tuple(_joined(s for span in spans for s in _slices_of(span, timing)))
    return Timeline(slices, timing.cost.cycles, timing.busy_by_chip[0])


def guess_phase(label: str) -> str:
    """forward, backward or update if the label says so, else empty."""
    lowered = label.lower()
    for phase, words in _PHASES.items():
        if any(word in lowered for word in words):
            return phase
    return ""


def _is_call(step: Step) -> bool:
    return isinstance(step, Call)


def _slices_of(span: Span, timing: Timing) -> Iterator[Slice]:
    step = timing.steps[span.step_id].step
    end = span.start_cycles + timing.costs[span.step_id].cycles * span.num_rounds
    stage, micro_batch = -1, -1
    if isinstance(step, Call):
        stage, micro_batch = step.stage, step.micro_batch
    label, phase = _describe(step)
    if span.num_rounds > 1:
        label = f"{label} x {span.num_rounds}"
    for chip, busy in enumerate(timing.busy_by_chip[span.step_id]):
        if busy:
            yield Slice(chip, span.start_cycles, end, label, stage, micro_batch, phase)


def _describe(step: Step) -> tuple[str, str]:
    """Label and phase; the leaves of one op share theirs, so that they can join."""
    if isinstance(step, Control) or not step.op:
        label = label_of(step)
        return label, guess_phase(label) or _kind_of(step)
    return step.op, guess_phase(step.op)


def _kind_of(step: Step) -> str:
    if isinstance(step, Execute):
        return "compute"
    if isinstance(step, Exchange):
        return "exchange"
    if isinstance(step, GlobalExchange):
        return "link"
    if isinstance(step, StreamCopy):
        return "host"
    return "" if isinstance(step, Control) else "sync"


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
        and (last.label, last.phase) == (following.label, following.phase)
        and max(last.stage, last.micro_batch) < 0
        and max(following.stage, following.micro_batch) < 0
    )
