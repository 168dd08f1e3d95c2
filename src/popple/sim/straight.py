"""Liveness of variables that are used in one stretch of steps, without loops or calls.

Nearly all transient variables are: a step writes one, later steps of the same stretch
read it. When such a variable lives follows from its uses alone, one after the other;
what happens around the stretch neither brings contents in nor wants them. All others,
and those that live on in a function that is called meanwhile, are left to the analysis
of the whole program (`flow`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from popple.program import (
    MAIN,
    Call,
    Control,
    Parallel,
    Repeat,
    Step,
    WriteUndef,
    accesses_of,
)
from popple.program import Sequence as StepSequence
from popple.sim.flow import StepTree

_NEVER_RUN = -1


@dataclass
class _Life:
    """What is known of a variable up to its last use so far."""

    stretch: int
    num_calls: int
    opened: int
    last: int
    is_written: bool = True
    intervals: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def use(self, step_id: int, num_calls: int, reads: bool, writes: bool) -> bool:
        """Go on to the next step that uses the variable; whether that can be told."""
        # Contents are kept for a reader; a write continues what a write began, while
        # one that follows a read begins anew.
        is_kept = reads or self.is_written
        if is_kept and num_calls > self.num_calls:
            return False
        if not is_kept and step_id > self.last + 1:
            self.intervals.append((self.opened, self.last))
            self.opened = step_id
        self.last, self.num_calls, self.is_written = step_id, num_calls, writes
        return True

    def end(self) -> tuple[tuple[int, int], ...]:
        """All intervals during which the variable lives."""
        return (*self.intervals, (self.opened, self.last))


def straight_intervals(
    names: Iterable[str], tree: StepTree
) -> dict[str, tuple[tuple[int, int], ...]]:
    """Intervals of those variables that are used in one stretch, from write to read."""
    found: dict[str, _Life | None] = dict.fromkeys(names)
    others: set[str] = set()
    num_calls = 0
    for row, stretch in zip(tree.steps, _stretches(tree), strict=True):
        step = row.step
        num_calls += isinstance(step, Call)
        reads, writes = accesses_of(step)
        is_odd = stretch == _NEVER_RUN or isinstance(step, Control | WriteUndef)
        for name in {*reads, *writes} & found.keys() if reads or writes else ():
            life, is_read = found[name], name in reads
            if is_odd or (is_read if life is None else life.stretch != stretch):
                others.add(name)
            elif life is None:
                found[name] = _Life(stretch, num_calls, row.id, row.id)
            elif not life.use(row.id, num_calls, is_read, name in writes):
                others.add(name)
    # What was written last may be wanted by whatever comes after the stretch.
    return {
        name: life.end()
        for name, life in found.items()
        if life is not None and not life.is_written and name not in others
    }


def _stretches(tree: StepTree) -> list[int]:
    """For every step the first one of its stretch: both are executed equally often."""
    stretches = [_NEVER_RUN] * len(tree.steps)
    called = {MAIN}
    for name in reversed(tree.order):  # callers first
        root = tree.steps[tree.roots[name]]
        if name not in called:
            continue
        stretches[root.id] = root.id
        for row in tree.steps[root.id : root.end_id]:
            if row.id != root.id:
                around = tree.steps[row.parent_id].step
                stretches[row.id] = _inside(around, stretches[row.parent_id], row.id)
            if isinstance(row.step, Call) and stretches[row.id] != _NEVER_RUN:
                called.add(row.step.function)
    return stretches


def _inside(around: Step, stretch: int, step_id: int) -> int:
    """The stretch of a step, given the step around it and the stretch of that one."""
    if stretch == _NEVER_RUN or isinstance(around, StepSequence | Parallel):
        return stretch
    if isinstance(around, Repeat) and not around.count:
        return _NEVER_RUN
    return step_id
