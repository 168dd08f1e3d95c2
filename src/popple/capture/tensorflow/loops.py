"""Loops: the program's own, and those of a step.

The program's own loop runs the step again and again, fetching and changing something
every time: it is walked once, and its trips are counted. A loop of the step (over
time, over a list) is walked as often as it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.trips import LoopTensors
from popple.capture.tensorflow.types import is_on_machine, tensor_type
from popple.capture.tensorflow.walk import Walker
from popple.graph import Role

MAX_WALKED_OPS = 50_000
"""A loop of the step is walked until it has been through about this many ops."""


@dataclass(frozen=True)
class LoopToWalk:
    """A loop of either style.

    `walk` goes through its body once; `num_ops` counts the ops in there, `is_own` says
    whether they fetch or change something or are the stages of a pipeline,
    `is_outermost` whether nothing surrounds it.
    """

    name: str
    tensors: LoopTensors
    walk: Callable[[Sequence[Known]], Sequence[Known]]
    num_ops: int
    is_own: bool
    is_outermost: bool


def walk_loop(
    walker: Walker, loop: LoopToWalk, start: Sequence[Known]
) -> Sequence[Known]:
    """What the loop's variables are in the end."""
    num_trips = loop.tensors.count(start)
    limit = max(1, MAX_WALKED_OPS // max(loop.num_ops, 1))
    is_long = num_trips is not None and num_trips > limit
    if loop.is_own or (is_long and loop.is_outermost):
        return _walk_once(walker, loop, start, num_trips)
    if num_trips is None:
        _note(walker, loop, "once: how often it runs depends on data")
    elif is_long:
        _note(walker, loop, f"as {limit} of its {num_trips} trips")
    state = start
    for _ in range(1 if num_trips is None else min(num_trips, limit)):
        state = loop.walk(state)
    return state


def _note(walker: Walker, loop: LoopToWalk, how: str) -> None:
    walker.remarks.append(f"The loop {loop.name} is counted {how}.")


def _walk_once(
    walker: Walker, loop: LoopToWalk, start: Sequence[Known], num_trips: int | None
) -> Sequence[Known]:
    """One trip; what the body changes is kept in memory between trips."""
    if num_trips is None:
        _note(walker, loop, "once: how often it runs depends on data")
    state = [
        known
        if loop.tensors.is_passed_through(position)
        else _kept(walker, loop, position, known)
        for position, known in enumerate(start)
    ]
    walker.enter_loop(1 if num_trips is None else num_trips)
    results = loop.walk(state)
    walker.leave_loop()
    return results


def _kept(walker: Walker, loop: LoopToWalk, position: int, known: Known) -> Known:
    """A variable that changes: always there, not known when compiling."""
    tensor = loop.tensors.inputs[position]
    if isinstance(known, str):
        kind = walker.builder.values[known].type
    elif isinstance(known, np.ndarray) and is_on_machine(tensor.dtype):
        kind = tensor_type(known.dtype, known.shape)
    else:
        return known
    return walker.builder.declare(tensor.op.name, kind, Role.STATE)
