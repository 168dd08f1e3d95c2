"""Assertions inside programs: a run that fails one leaves no trace.

On the device an assertion stops the program before its variables are copied back. Here
TensorFlow changes them as it goes, so what an asserting program may write is kept aside
and put back. Programs without assertions pay nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow.compat.v2 as tf

from .. import _errors

_RESTORE = "_popple_restore"


def has_assertions(operations: Iterable[Any]) -> bool:
    """Whether one of these operations is an assertion."""
    return any(op.type == "Assert" for op in operations)


def run_function(function: Callable[[], Any], variables: Iterable[Any]) -> Any:
    """Call a function eagerly; put the variables back if an assertion fails."""
    # Copies of all variables, which only programs with assertions pay for.
    before = [(variable, variable.read_value()) for variable in variables]
    try:
        return function()
    except tf.errors.InvalidArgumentError as error:
        if not _is_assertion(error):
            raise
        for variable, value in before:
            variable.assign(value)
        # As the device reports it: programs that catch the class find it.
        raise _internal(error) from error


def guard_graph(graph: tf.Graph) -> None:
    """Let sessions put variables back when a program in `graph` fails an assertion."""
    if not hasattr(graph, _RESTORE):
        setattr(graph, _RESTORE, _Guard(graph))


def run_session(
    run: Callable[..., Any], graph: tf.Graph, *args: Any, **kwargs: Any
) -> Any:
    """Run a session's `run` on a graph that may be guarded."""
    guard: _Guard | None = getattr(graph, _RESTORE, None)
    if guard is None:
        return run(*args, **kwargs)
    before = list(guard.values(run))
    try:
        return run(*args, **kwargs)
    except tf.errors.InvalidArgumentError as error:
        if not _is_assertion(error):
            raise
        for variable, value in before:
            variable.load(value, _Session(run))
        raise _internal(error) from error


class _Guard:
    """Reads the variables of a graph; what it needs for that is built once."""

    def __init__(self, graph: tf.Graph) -> None:
        self._graph = weakref.proxy(graph)  # which holds this guard
        self._reads: dict[Any, tuple[Any, Any]] = {}

    def values(self, run: Callable[..., Any]) -> Iterator[tuple[Any, Any]]:
        """The variables that have a value, and the value."""
        variables = self._graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
        new = [v for v in variables if v.ref() not in self._reads]
        if new:
            self._read(new)
        known = run([self._reads[v.ref()][0] for v in variables])
        found = [v for v, is_known in zip(variables, known, strict=True) if is_known]
        values = run([self._reads[v.ref()][1] for v in found])
        yield from zip(found, values, strict=True)

    def _read(self, variables: Iterable[Any]) -> None:
        graph = self._graph
        is_final = graph.finalized  # by a monitored session, against changes of others
        if is_final:
            graph._unsafe_unfinalize()
        with graph.as_default():
            for variable in variables:
                reads = (variable.is_initialized(), variable.value())
                self._reads[variable.ref()] = reads
        if is_final:
            graph.finalize()


class _Session:
    """As much of a session as `Variable.load` needs, past the guard."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run


def _is_assertion(error: tf.errors.OpError) -> bool:
    return "assertion failed" in (error.message or "")


def _internal(error: tf.errors.OpError) -> tf.errors.OpError:
    return _errors.error(tf.errors.InternalError, error.message)
