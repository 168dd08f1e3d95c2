"""What programs take from the host and give back: streams, and variables that stay."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import ops

__all__ = ["Arguments", "arguments_of"]

_READS = frozenset({"ReadVariableOp", "VarIsInitializedOp", "ResourceGather"})


@dataclass(frozen=True)
class Arguments:
    """What a program takes from and gives to the host.

    `variables` are the names of those it holds, `written` those it may change,
    `objects` the variables themselves where they can be looked at.
    """

    num_inputs: int
    num_outputs: int
    variables: tuple[str, ...]
    written: tuple[str, ...]
    objects: tuple[Any, ...] = ()

    def downloads(self) -> list[str]:
        """The variables by their numbers among the arguments."""
        return [f"{self.num_inputs + n}.0" for n, _ in enumerate(self.variables)]

    def uploads(self) -> list[str]:
        """The variables that come back by their numbers among the results."""
        return [f"out_{self.num_outputs + n}.0" for n, _ in enumerate(self.written)]

    def values(self) -> list[Any]:
        """What the variables hold now."""
        return [variable.numpy() for variable in self.objects]


def arguments_of(
    graph: tf.Graph, program: Sequence[Any] | None, num_outputs: int
) -> Arguments:
    """The arguments of a traced function, or of operations of an old-style graph."""
    if program is not None:
        return _arguments_of_ops(program, num_outputs)
    streamed = [x for x in graph.inputs if x.dtype != tf.resource]
    held = {id(v.handle): v for v in graph.variables}
    pairs = [(held[id(out)], x) for out, x in graph.captures if id(out) in held]
    return Arguments(
        len(streamed),
        len(graph.outputs),
        tuple(variable.name for variable, _ in pairs),
        tuple(variable.name for variable, inner in pairs if _is_written(inner)),
        tuple(v for v, _ in pairs if isinstance(v.handle, ops.EagerTensor)),
    )


def _arguments_of_ops(program: Sequence[Any], num_outputs: int) -> Arguments:
    inside = {op.name for op in program}
    tensors = {x.name: x for op in program for x in op.inputs}
    # Variables may be read beside the program.
    reads = [x.op.inputs[0] for x in tensors.values() if x.op.type in _READS]
    handles = {x.op.name: x for x in (*tensors.values(), *reads)}
    held = sorted(
        (x for x in handles.values() if x.op.type == "VarHandleOp"),
        key=lambda handle: handle.op._id,
    )
    return Arguments(
        sum(_is_streamed(x, inside) for x in tensors.values()),
        num_outputs,
        tuple(handle.op.name for handle in held),
        tuple(handle.op.name for handle in held if _is_written(handle, inside)),
    )


def _is_streamed(x: tf.Tensor, inside: Set[str]) -> bool:
    if x.dtype == tf.resource or x.op.type in _READS or x.op.type == "Const":
        return False
    return x.op.type == "Placeholder" or x.op.name not in inside


def _is_written(handle: tf.Tensor, inside: Set[str] | None = None) -> bool:
    """Whether an operation, of those inside if they are given, may change it."""
    return any(
        consumer.type not in _READS
        for consumer in handle.consumers()
        if inside is None or consumer.name in inside
    )
