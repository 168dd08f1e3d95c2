"""Functions of the Graph: parts of a program that have builders of their own.

A body may name values from around it. When it is closed these become its arguments,
behind those that it declares itself; constants from around become its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from popple.capture.tensorflow.builder import GraphBuilder, Mark
from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.tags import either
from popple.capture.tensorflow.walk import Walker
from popple.graph import Graph, Phase, Role, Value


@contextmanager
def function_of(walker: Walker) -> Iterator[GraphBuilder]:
    """What is walked inside is written to a builder for a function."""
    outer = walker.builder
    # Both write ops: rules to the walker's builder, variables to that of the effects.
    walker.builder = walker.effects.builder = outer.inner()
    try:
        yield walker.builder
    finally:
        walker.builder = walker.effects.builder = outer


def is_number(known: Known) -> bool:
    """Whether something is a tensor of numbers."""
    return isinstance(known, (str, np.ndarray))


def result_name(body: GraphBuilder, known: Known, name: str) -> str:
    """What a body gives, as a value."""
    if isinstance(known, np.ndarray):
        return body.constant(name, known)
    assert isinstance(known, str), "only tensors of numbers leave a function"
    return known


def needed_values(body: GraphBuilder, results: Sequence[str]) -> set[str]:
    """Values that the results of a body are made of, and they themselves."""
    needed = set(results)
    for op in reversed(body.ops):
        if not needed.isdisjoint(op.outputs):
            needed.update(op.inputs)
    return needed


def prune(body: GraphBuilder, results: Sequence[str]) -> None:
    """Leave out ops that nothing depends on, so that their inputs are not given."""
    needed = needed_values(body, results)
    live = [i for i, op in enumerate(body.ops) if not needed.isdisjoint(op.outputs)]
    body.ops = [body.ops[index] for index in live]
    body.marks = [body.marks[index] for index in live]


def captured(body: GraphBuilder, results: Sequence[str]) -> list[str]:
    """Values from around that a body names; constants among them become its own."""
    read = [*(name for op in body.ops for name in op.inputs), *results]
    found: list[str] = []
    for name in dict.fromkeys(read):
        if name in body.values:
            continue
        assert body.outer is not None, "the main graph has nothing around it"
        value = body.outer.find(name)
        # A constant costs no argument: it lies in the function's own memory.
        if value.role is Role.CONSTANT:
            body.values[name] = value
        else:
            found.append(name)
    return found


def close_function(
    context: OpContext,
    body: GraphBuilder,
    arguments: Sequence[str],
    results: Sequence[str],
    known: GraphBuilder,
) -> str:
    """Make a function of what a builder holds; gives the function's own name.

    `context` stands for the op that runs it: all of it is done in the phase of that op,
    also what is kept for the backward pass. `known` is the builder that knows the types
    of all arguments.
    """
    given = {
        name: Value(name, known.type_of(name), Role.ARGUMENT) for name in arguments
    }
    made = {
        name: value
        for name, value in body.values.items()
        if value.role is not Role.ARGUMENT
    }
    label = unique = context.tag.name
    number = 1
    while unique in body.functions:
        unique, number = f"{label}.{number}", number + 1
    phase = context.tag.phase or Phase.FORWARD
    # One op runs the function, in one phase: ops marked otherwise would be counted in a
    # phase that never runs them.
    ops = tuple(replace(op, phase=phase) for op in body.ops)
    body.functions[unique] = Graph(unique, {**given, **made}, ops, tuple(results))
    return unique


def placed(context: OpContext, bodies: Sequence[GraphBuilder]) -> OpContext:
    """The op that runs functions, where their ops were put.

    CaptureError if they were put in several places: a function is in one.
    """
    inner = {Mark(m.stage, m.chip) for body in bodies for m in body.marks}
    said = inner - {Mark()}
    if len({m.stage for m in said} - {None}) > 1 or len({m.chip for m in said}) > 1:
        raise context.error("its ops were put on several chips or stages")
    mark = context.tag.mark
    for each in said:
        mark = replace(either(mark, each), depth=mark.depth)
    return replace(context, tag=replace(context.tag, mark=mark))
