"""Outlined functions: what a program marks to exist once, however often it is called.

The ops of each call become a function of the Graph; calls that do the same with tensors
of the same types share one. Ops of the backward pass are no part of the call.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.control.functions import (
    captured,
    close_function,
    function_of,
    placed,
    prune,
)
from popple.capture.tensorflow.control.table import has_ops
from popple.capture.tensorflow.framework import Operation, Tensor
from popple.capture.tensorflow.known import names_in
from popple.capture.tensorflow.order import changes_something
from popple.capture.tensorflow.walk import Environment, Surroundings, Walker
from popple.errors import CaptureError
from popple.graph import Graph


@dataclass(frozen=True)
class OutlinedCall:
    """One call of an outlined function, by a label that no other call has."""

    label: str


def walk_outlined(
    walker: Walker,
    call: OutlinedCall,
    ops: Sequence[Operation],
    found: Environment,
    around: Surroundings,
) -> None:
    """Write a call, or the ops themselves if they cannot be a function."""
    inside = replace(around, outlined=(*around.outlined, call.label))
    # A function only gives results: what variables become, it cannot say.
    if not has_ops(ops, changes_something):
        num_remarks, stacks = len(walker.remarks), dict(walker.effects.stacks)
        try:
            _walk_as_function(walker, ops, found, inside)
            return
        except CaptureError:
            # What the attempt noted is undone.
            del walker.remarks[num_remarks:]
            walker.effects.stacks = stacks
    walker.walk_ops(ops, found, inside)


def _walk_as_function(
    walker: Walker, ops: Sequence[Operation], found: Environment, inside: Surroundings
) -> None:
    tag = walker.tag(ops[-1], inside)
    phase = tag.phase or walker.phase_behind(ops[-1], ())
    tag = replace(tag, phase=phase, name=tag.name.rpartition("/")[0] or tag.name)
    context = OpContext(walker.builder, walker.effects, ops[-1], tag, ())
    local = dict(found)
    with function_of(walker) as body:
        walker.walk_ops(ops, local, inside)
    leaving = {id(tensor): local[id(tensor)] for tensor in _leaving(ops)}
    results: list[str] = []
    for known in leaving.values():
        own = [name for name in names_in(known) if name in body.values]
        # A list of the body's values cannot be returned: functions give tensors only.
        if own and not isinstance(known, str):
            raise context.error("it gives something that is no tensor of numbers")
        results += own
    results = list(dict.fromkeys(results))
    if not results:
        raise context.error("it computes nothing")
    made = dict(zip(results, _call(context, body, results), strict=True))
    found.update(
        (key, made.get(known, known) if isinstance(known, str) else known)
        for key, known in leaving.items()
    )


def _call(
    context: OpContext, body: GraphBuilder, results: Sequence[str]
) -> Sequence[str]:
    """Append the call; what it gives."""
    context = placed(context, [body])
    prune(body, results)
    given = captured(body, results)
    types = [body.type_of(name) for name in results]
    name = close_function(context, body, given, results, body)
    name = _shared(body, name)
    return context.emit("call", given, types, attrs={"function": name})


def _shared(body: GraphBuilder, name: str) -> str:
    """The function, or one made before that does the same."""
    # Equal functions have one body, so their code and vertices stand once on a tile,
    # which is what outlining is for.
    form = form_of(body.functions[name])
    known = body.forms.setdefault(form, name)
    if known != name:
        del body.functions[name]
    return known


def form_of(function: Graph) -> Hashable:
    """What a function does, whatever its values are called."""
    # Calls of one function have other names: values are told by their position.
    numbers = {name: number for number, name in enumerate(function.values)}

    def numbered(names: Sequence[str]) -> tuple[int, ...]:
        return tuple(numbers[name] for name in names)

    values = tuple(
        (value.type, value.role, numbers[value.storage] if value.storage else None)
        for value in function.values.values()
    )
    ops = tuple(
        (function.signature(op), op.phase, numbered(op.inputs), numbered(op.outputs))
        for op in function.ops
    )
    return values, ops, numbered(function.outputs)


def _leaving(ops: Sequence[Operation]) -> list[Tensor]:
    """Tensors that are read outside, or that nobody reads: results of the program."""
    inside = set(ops)
    tensors = [tensor for op in ops for tensor in op.outputs]
    return [
        tensor
        for tensor in tensors
        if not tensor.consumers() or not inside.issuperset(tensor.consumers())
    ]
