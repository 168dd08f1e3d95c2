"""Timing of a whole program from the times of its leaf steps, without unrolling loops.

Walks the numbered steps twice: upwards for the cost of one execution of every step,
downwards for how often every step is executed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeAlias

from popple.program import (
    MAIN,
    Call,
    Control,
    If,
    Numbering,
    Parallel,
    Program,
    Repeat,
    RepeatWhile,
    Step,
    Switch,
    Sync,
    call_order,
    child_ids,
    root_ids,
)
from popple.sim.cost import ZERO, Cost, total_cost
from popple.sim.leaves import LeafTime, LeafTimer
from popple.target import Target

Parts: TypeAlias = tuple[tuple[int, int], ...]
"""(step number, times) of the steps that a control step executes"""


@dataclass(frozen=True)
class Timing:
    """Costs of all steps of a program, indexed by step number.

    `costs` and `busy_by_chip` are of one execution of a step with everything inside;
    `executions` counts how often it is executed. `parts` are the steps that a control
    step executes and how often. `leaf_times` holds None for control steps.
    """

    steps: Numbering
    leaf_times: tuple[LeafTime | None, ...]
    costs: tuple[Cost, ...]
    busy_by_chip: tuple[tuple[int, ...], ...]
    executions: tuple[int, ...]
    parts: tuple[Parts, ...]

    @property
    def cost(self) -> Cost:
        """The whole program."""
        return self.costs[0]

    @property
    def idle_by_chip(self) -> tuple[int, ...]:
        """Cycles every chip spends waiting for others."""
        return tuple(self.cost.cycles - busy for busy in self.busy_by_chip[0])

    @cached_property
    def cost_by_op(self) -> Mapping[str, Cost]:
        """Costs of all executions of the leaves of each op; "" has no op.

        Ops that run at the same time on different chips each count in full.
        """
        by_op: defaultdict[str, list[Cost]] = defaultdict(list)
        # Steps that do the same share their time.
        known: dict[tuple[int, int], Cost] = {}
        for row, leaf, count in zip(
            self.steps, self.leaf_times, self.executions, strict=True
        ):
            if leaf is not None and count and not isinstance(row.step, Control):
                key = id(leaf), count
                if (cost := known.get(key)) is None:
                    cost = known[key] = leaf.cost * count
                by_op[row.step.op].append(cost)
        return {op: total_cost(costs) for op, costs in by_op.items()}

    @cached_property
    def cost_by_function(self) -> Mapping[str, Cost]:
        """Costs of all executions of main and of each function."""
        return {
            name: self.costs[root] * self.executions[root]
            for name, root in root_ids(self.steps).items()
        }


def time_program(program: Program, target: Target) -> Timing:
    """The timing of a verified program."""
    steps = program.steps
    roots = root_ids(steps)
    leaf_times = _time_leaves(steps, program, target)
    scopes = _scopes(steps, program)
    costs = [ZERO] * len(steps)
    busy = [(0,) * program.num_chips] * len(steps)
    parts: list[Parts] = [()] * len(steps)
    upward = _upward_ids(steps, program)
    for step_id in upward:
        if (leaf := leaf_times[step_id]) is not None:
            costs[step_id] = leaf.cost
            busy[step_id] = _leaf_busy(steps[step_id].step, leaf, scopes[step_id])
            continue
        parts[step_id] = _parts_of(steps, step_id, roots, costs)
        costs[step_id] = _cost_of(steps[step_id].step, parts[step_id], costs)
        busy[step_id] = _busy_of(steps[step_id].step, parts[step_id], busy)
    executions = _count_executions(reversed(upward), parts)
    return Timing(
        steps,
        tuple(leaf_times),
        tuple(costs),
        tuple(busy),
        executions,
        tuple(parts),
    )


def _time_leaves(
    steps: Numbering, program: Program, target: Target
) -> list[LeafTime | None]:
    timer = LeafTimer(program, target)
    return [
        None if isinstance(row.step, Control) else timer.time(row.step) for row in steps
    ]


def _scopes(steps: Numbering, program: Program) -> list[frozenset[int]]:
    """For every step the chips that run the part of the program it stands in."""
    finder = program.chip_finder
    scopes: list[frozenset[int]] = []
    for row in steps:
        parent = steps[row.parent_id].step if row.parent_id >= 0 else None
        if row.id == 0:
            scopes.append(frozenset(range(program.num_chips)))
        # A branch, like a function, runs on the chips of its own steps; a sync in it
        # must not make the chips of other branches busy.
        elif parent is None or isinstance(parent, Parallel):
            scopes.append(finder.chips_of(row.step))
        else:
            scopes.append(scopes[row.parent_id])
    return scopes


def _upward_ids(steps: Numbering, program: Program) -> list[int]:
    """All steps, inner ones before outer ones and callees before callers."""
    roots = root_ids(steps)
    return [
        step_id
        for name in (*call_order(program.functions), MAIN)
        for step_id in range(steps[roots[name]].end_id - 1, roots[name] - 1, -1)
    ]


def _parts_of(
    steps: Numbering,
    step_id: int,
    roots: Mapping[str, int],
    costs: Sequence[Cost],
) -> Parts:
    """The steps that one execution of a control step executes, and how often."""
    step = steps[step_id].step
    if isinstance(step, Call):
        return ((roots[step.function], 1),)
    inner = tuple(child_ids(steps, step_id))
    if isinstance(step, Repeat):
        return ((inner[0], step.count),)
    if isinstance(step, RepeatWhile):
        condition, body = inner
        # The test that ends the loop runs the condition once more than the body.
        return ((condition, step.expected_count + 1), (body, step.expected_count))
    # Which case runs depends on data, which are not simulated: the longest is assumed.
    # The others count as never executed.
    if isinstance(step, If | Switch):
        return ((max(inner, key=lambda child: costs[child].cycles), 1),)
    return tuple((child, 1) for child in inner)


def _cost_of(step: Step, parts: Parts, costs: Sequence[Cost]) -> Cost:
    each = [costs[p] if times == 1 else costs[p] * times for p, times in parts]
    if isinstance(step, Parallel):
        return reduce(Cost.beside, each, ZERO)
    return total_cost(each)


def _leaf_busy(step: Step, leaf: LeafTime, scope: frozenset[int]) -> tuple[int, ...]:
    if not isinstance(step, Sync):
        return leaf.cycles_by_chip
    return tuple(
        leaf.cost.cycles if chip in scope else 0
        for chip in range(len(leaf.cycles_by_chip))
    )


def _busy_of(
    step: Step, parts: Parts, busy: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """Busy cycles of each chip; what it does at the same time counts once."""
    if not parts:
        return (0,) * len(busy[0])
    done = (
        busy[part] if times == 1 else [cycles * times for cycles in busy[part]]
        for part, times in parts
    )
    join = max if isinstance(step, Parallel) else sum
    return tuple(map(join, zip(*done, strict=True)))


def _count_executions(
    downward: Iterable[int], parts: Sequence[Parts]
) -> tuple[int, ...]:
    executions = [0] * len(parts)
    # Main is executed once; callers come before callees, so counts are complete when
    # they are multiplied.
    executions[0] = 1
    for step_id in downward:
        for part, times in parts[step_id]:
            executions[part] += executions[step_id] * times
    return tuple(executions)
