"""Keys of programs in the executable cache: a digest of everything they are made of.

In: a traced program, its settings, the device's configuration, the machine. Out: the
same SHA-256 in every process that builds the same program, whichever numbers TensorFlow
gives its functions on the way. Constants count with their values, variables with their
shapes: what is modelled does not depend on what they hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf

from popple.marks import OUTLINED, REGION
from popple.session.packages import own_sources
from popple.target import System

from .program_settings import ProgramSettings

__all__ = ["program_key"]

# What changes from run to run and nothing reads: numbers of gradients and functions.
_DROPPED = frozenset(
    {
        "_gradient_op_type",
        "_construction_context",
        "backward_function_name",
        "forward_function_name",
    }
)
# Marks whose text has a number that no other region has: "gelu:7".
_NUMBERED = (REGION, OUTLINED)
_NUMBER = re.compile(r":(\d+)")
_UNUSED = re.compile(r"_\d+(___redundant_placeholder)")
_RESOURCES = (tf.resource, tf.variant)
_REPORT_OPTIONS = "autoReport."


def program_key(
    graph: Any,
    ops: Sequence[Any] | None,
    results: Sequence[str],
    settings: ProgramSettings,
    configured: Any,
    system: System,
) -> str:
    """The key of a traced function, or of operations of an old-style graph."""
    digest = hashlib.sha256()
    for token in (
        own_sources().encode(),
        tf.__version__.encode(),
        repr(settings).encode(),
        repr(system).encode(),
        _describe_options(configured),
        *_describe_program(graph, ops),
        *(name.encode() for name in results),
    ):
        # Lengths keep two tokens from reading as one.
        digest.update(f"{len(token)}:".encode())
        digest.update(token)
    return digest.hexdigest()


def _describe_options(configured: Any) -> bytes:
    """The configuration but for where reports go and which process this is."""
    kept = type(configured)()
    kept.CopyFrom(configured)
    options = [
        option
        for option in configured.compilation_options
        if not option.option.startswith(_REPORT_OPTIONS)
    ]
    del kept.compilation_options[:]
    kept.compilation_options.extend(options)
    kept.ClearField("multi_replica_process_index")
    return kept.SerializeToString(deterministic=True)


def _describe_program(graph: Any, ops: Sequence[Any] | None) -> Iterator[bytes]:
    definition = graph.as_graph_def(add_shapes=True)
    names = _Names(function.signature.name for function in definition.library.function)
    inside = None if ops is None else _with_sources(ops)
    for node in definition.node:
        if inside is None or node.name in inside:
            yield names.canonical(node)
    if ops is None:
        yield from _describe_inputs(graph)
    # Bodies come in the order in which they are called: their names have no order.
    bodies = {body.signature.name: body for body in definition.library.function}
    for function in names.called(bodies):
        arguments = [
            (_without_number(argument.name), argument.type)
            for argument in function.signature.input_arg
        ]
        yield repr(arguments).encode()
        for node in function.node_def:
            yield names.canonical(node)
        yield repr(sorted(function.ret.items())).encode()


def _describe_inputs(graph: Any) -> Iterator[bytes]:
    """Arguments by type, captured tensors by value, variables by name and shape."""
    captured = {id(inside): outside for outside, inside in graph.captures}
    # Weakly: variables that are gone may have left their handles.
    variables = (reference() for reference in graph._weak_variables)
    handles = {id(found.handle): found for found in variables if found is not None}
    for tensor in graph.inputs:
        outside = captured.get(id(tensor))
        yield _describe_tensor(tensor)
        if id(outside) in handles:
            variable = handles[id(outside)]
            yield f"{variable.name} {variable.trainable}".encode()
            yield _describe_tensor(variable)
        elif hasattr(outside, "numpy") and outside.dtype not in _RESOURCES:
            yield np.asarray(outside.numpy()).tobytes()


def _describe_tensor(tensor: Any) -> bytes:
    return f"{tensor.dtype.name} {_shape_of(tensor)}".encode()


def _shape_of(tensor: Any) -> list[int | None] | None:
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def _with_sources(ops: Sequence[Any]) -> set[str]:
    """Names of operations and of all that they are computed from without state."""
    found: set[str] = set()
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op.name not in found:
            found.add(op.name)
            sources = (tensor.op for tensor in op.inputs)
            waiting += [source for source in sources if not source._is_stateful]
            # Of what has a state, only what it is.
            found.update(t.op.name for t in op.inputs if t.op._is_stateful)
    return found


def _without_number(name: str) -> str:
    """The name of an argument: those that a loop does not use have its number in it."""
    return _UNUSED.sub(r"\1", name)


class _Names:
    """Functions and regions by the order in which a program mentions them."""

    def __init__(self, functions: Iterable[str]) -> None:
        self._functions = frozenset(functions)
        self._order: dict[str, int] = {}
        self._regions: dict[str, int] = {}

    def canonical(self, node: Any) -> bytes:
        """A node without what differs between two builds of the same program."""
        copied = type(node)()
        copied.CopyFrom(node)
        # Where TensorFlow keeps a resource is no part of the program.
        for name in _DROPPED.intersection(copied.attr) | {"shared_name", "container"}:
            copied.attr.pop(name, None)
        copied.ClearField("experimental_debug_info")
        # Sorted, as functions are numbered in this order.
        for name in sorted(copied.attr):
            self._renumber(name, copied.attr[name])
        copied.op = self._function(copied.op)
        copied.input[:] = [_without_number(each) for each in copied.input]
        return copied.SerializeToString(deterministic=True)

    def _renumber(self, name: str, value: Any) -> None:
        """Give functions and regions that an attribute mentions their own numbers."""
        if name in _NUMBERED:
            value.s = _NUMBER.sub(self._region, value.s.decode()).encode()
        # Asked for first: a message field that is touched comes into being.
        kind = value.WhichOneof("value")
        called = {"func": lambda: [value.func], "list": lambda: value.list.func}
        for function in called.get(kind, list)():
            function.name = self._function(function.name)

    def called(self, definitions: dict[str, Any]) -> Iterator[Any]:
        """The functions mentioned so far, and those that they mention in turn."""
        done = 0
        while done < len(self._order):
            name = list(self._order)[done]
            done += 1
            yield definitions[name]

    def _function(self, name: str) -> str:
        if name not in self._functions:
            return name
        return f"function {self._order.setdefault(name, len(self._order))}"

    def _region(self, match: re.Match[str]) -> str:
        return f":{self._regions.setdefault(match[1], len(self._regions))}"
