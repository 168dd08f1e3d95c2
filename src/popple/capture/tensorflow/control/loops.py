"""Loops: the program's own, and those of a step.

The program's own loop runs the step again and again, fetching and changing something
every time: it is walked once, and its trips are counted. A loop of the step (over time,
over a list) becomes one op that runs its body, a function, so often. A body that cannot
be a function is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.control.functions import function_of
from popple.capture.tensorflow.control.loop_state import LoopState
from popple.capture.tensorflow.control.scopes import LoopScope
from popple.capture.tensorflow.control.trips import LoopTensors
from popple.capture.tensorflow.framework import Operation
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.tags import Tag
from popple.capture.tensorflow.types import is_on_machine, tensor_type
from popple.capture.tensorflow.walk import Walker
from popple.errors import CaptureError
from popple.graph import DType, Role, TensorType

MAX_UNROLLED_OPS = 50_000
"""A loop that cannot be a function is unrolled up to about this many ops."""

_DECISION = TensorType(DType.BOOL, ())


@dataclass(frozen=True)
class LoopToWalk:
    """A loop of either style; `op` and `tag` stand for it.

    `walk` goes through its body once, `decide` through its condition; `num_ops` counts
    the ops in its body, `is_own` says whether they fetch or change something or are the
    stages of a pipeline.
    """

    op: Operation
    tag: Tag
    tensors: LoopTensors
    walk: Callable[[Sequence[Known]], Sequence[Known]]
    decide: Callable[[Sequence[Known]], Known]
    num_ops: int
    is_own: bool

    @property
    def name(self) -> str:
        """What remarks call the loop."""
        return self.tag.name


def walk_loop(
    walker: Walker, loop: LoopToWalk, start: Sequence[Known]
) -> Sequence[Known]:
    """What the loop's variables are in the end."""
    num_trips = loop.tensors.count(start)
    if num_trips is None:
        _note(walker, loop, "counted once: how often it runs depends on data.")
    if loop.is_own:
        return _walk_once(walker, loop, start, num_trips)
    if num_trips == 0:
        return start
    # One trip is no loop: its ops are planned with those around them.
    if num_trips == 1:
        return loop.walk(start)
    num_remarks, stacks = len(walker.remarks), dict(walker.effects.stacks)
    try:
        return _walk_as_function(walker, loop, start, num_trips)
    except CaptureError as error:
        # What the attempt noted is undone.
        del walker.remarks[num_remarks:]
        walker.effects.stacks = stacks
        _note(walker, loop, f"unrolled: {error.what}")
    return _unroll(walker, loop, start, num_trips or 1)


def _note(walker: Walker, loop: LoopToWalk, how: str) -> None:
    walker.remarks.append(f"The loop {loop.name} is {how}")


# -- as a function


def _walk_as_function(
    walker: Walker, loop: LoopToWalk, start: Sequence[Known], num_trips: int | None
) -> Sequence[Known]:
    """One op that runs the body so many times, or as long as its condition holds."""
    context = _context(walker, loop, start)
    with function_of(walker) as body, _scope(context, body, num_trips) as scope:
        state = LoopState(context, scope, loop.tensors, start)
        state.finish(loop.walk(state.given()))
    if num_trips is not None:
        state.drop_counters()
        return state.emit("repeat", (body,), {"count": num_trips})
    with function_of(walker) as test:
        # The condition reads what the body is given, under the same names.
        test.values.update({n: body.values[n] for n in state.arguments})
        decision = _decision(walker, loop, loop.decide(state.given()))
    return state.emit("while", (body, test), {"count": 1}, decision)


@contextmanager
def _scope(
    context: OpContext, body: GraphBuilder, num_trips: int | None
) -> Iterator[LoopScope]:
    """The loop whose body is walked inside."""
    effects, outer = context.effects, context.effects.scope
    effects.scope = scope = LoopScope(body, context.tag, num_trips, outer)
    try:
        yield scope
    finally:
        effects.scope = outer


def _context(walker: Walker, loop: LoopToWalk, start: Sequence[Known]) -> OpContext:
    """The loop as an op that is not written yet."""
    phase = loop.tag.phase or walker.phase_behind(loop.op, start)
    tag = replace(loop.tag, phase=phase)
    return OpContext(walker.builder, walker.effects, loop.op, tag, ())


def _decision(walker: Walker, loop: LoopToWalk, known: Known) -> str:
    context = OpContext(walker.builder, walker.effects, loop.op, loop.tag, ())
    name = context.name_of(known, f"{loop.name}.condition")
    if context.type_of(name) != _DECISION:
        raise context.error("its condition is not one bool")
    return name


# -- unrolled, and the program's own


def _unroll(
    walker: Walker, loop: LoopToWalk, start: Sequence[Known], num_trips: int
) -> Sequence[Known]:
    """The body as often as it runs, or as often as is bearable."""
    # Every unrolled trip is planned and simulated: time and memory of the compiler.
    limit = max(1, MAX_UNROLLED_OPS // max(loop.num_ops, 1))
    if num_trips > limit:
        _note(walker, loop, f"counted as {limit} of its {num_trips} trips.")
    state = start
    for _ in range(min(num_trips, limit)):
        state = loop.walk(state)
    return state


def _walk_once(
    walker: Walker, loop: LoopToWalk, start: Sequence[Known], num_trips: int | None
) -> Sequence[Known]:
    """One trip; what the body changes is kept in memory between trips."""
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
        kind = walker.builder.type_of(known)
    elif isinstance(known, np.ndarray) and is_on_machine(tensor.dtype):
        kind = tensor_type(known.dtype, known.shape)
    else:
        return known
    # What it was before the loop holds for the first trip only, which is one of many.
    return walker.builder.declare(tensor.op.name, kind, Role.STATE)
