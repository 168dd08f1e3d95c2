"""Assertions inside programs: a run that fails one leaves no trace.

On the device an assertion stops the program before its variables are copied back. Here
TensorFlow changes them as it goes, so what an asserting program may write is kept aside
and put back. Programs without assertions pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf

from . import _errors

_RESTORE = "_popple_restore"


def has_assertions(operations: Iterable[Any]) -> bool:
    """Whether one of these operations is an assertion."""
    return any(op.type == "Assert" for op in operations)


def run_function(function: Callable[[], Any], variables: Iterable[Any]) -> Any:
    """Call a function eagerly; put the variables back if an assertion fails."""
    before = [(variable, variable.read_value()) for variable in variables]
    try:
        return function()
    except tf.errors.InvalidArgumentError as error:
        if not _is_assertion(error):
            raise
        for variable, value in before:
            variable.assign(value)
        raise _internal(error) from error


def guard_graph(graph: Any) -> None:
    """Let sessions put variables back when a program in `graph` fails an assertion."""
    setattr(graph, _RESTORE, True)


def run_session(run: Callable[..., Any], graph: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a session's `run` on a graph that may be guarded."""
    if not getattr(graph, _RESTORE, False):
        return run(*args, **kwargs)
    before = list(_values(run, graph))
    try:
        return run(*args, **kwargs)
    except tf.errors.InvalidArgumentError as error:
        if not _is_assertion(error):
            raise
        for variable, value in before:
            variable.load(value, _Session(run))
        raise _internal(error) from error


class _Session:
    """As much of a session as `Variable.load` needs, past the guard."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run


def _values(run: Callable[..., Any], graph: Any) -> Iterator[tuple[Any, Any]]:
    """The variables of a graph that have a value, and the value."""
    variables = graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
    with graph.as_default():
        known = run([variable.is_initialized() for variable in variables])
    found = [v for v, is_known in zip(variables, known, strict=True) if is_known]
    yield from zip(found, run([v.value() for v in found]), strict=True)


def _is_assertion(error: tf.errors.OpError) -> bool:
    return "assertion failed" in (error.message or "")


def _internal(error: tf.errors.OpError) -> tf.errors.OpError:
    return _errors.error(tf.errors.InternalError, error.message)
