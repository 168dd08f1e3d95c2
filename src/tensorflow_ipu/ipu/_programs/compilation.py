"""Whether operations being made belong to an IPU program, and for how many replicas.

In: scopes around what builds a program, and what the program says of its IPUs. Out: the
number of replicas that its device holds. How many there are follows from the device and
from the IPUs that one replica spans, which only the traced operations tell.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from popple.engine.tensorflow import (
    ALONE,
    Processes,
    Trace,
    num_local_replicas,
    processes,
    tracing,
)

from .. import _device, sharding
from .._arithmetic import as_on_device


class _Compiling(threading.local):
    """Whether this thread is inside a program, and what it has said of its IPUs."""

    depth: int = 0
    num_shards: int = 1
    ordinal: int | None = None


_COMPILING = _Compiling()


class AnotherCountError(Exception):
    """A program says, while it is traced, that it has another number of replicas."""


_DISCARDED = "_popple_discarded"


def discard(built: Any) -> None:
    """Say that a graph, or an operation, is of a program that is built again."""
    setattr(built, _DISCARDED, True)


def is_discarded(op: Any) -> bool:
    """Whether an operation belongs to a program that was built again since."""
    if getattr(op, _DISCARDED, False):
        return True
    graph = op.graph
    while graph is not None:
        if getattr(graph, _DISCARDED, False):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


def compiling() -> bool:
    """Whether the operations being made belong to an IPU program."""
    return _COMPILING.depth > 0


@contextlib.contextmanager
def program_scope() -> Iterator[None]:
    """What is built inside is one IPU program."""
    outer = _COMPILING.num_shards
    # A program inside a program (a Keras step in a strategy's run) is part of it, so
    # only the outermost starts to count shards anew.
    _COMPILING.depth += 1
    if _COMPILING.depth == 1:
        _COMPILING.num_shards = 1
    try:
        with as_on_device.computing():
            yield
    finally:
        _COMPILING.depth -= 1
        if _COMPILING.depth == 0:
            _COMPILING.num_shards = outer


@contextlib.contextmanager
def assuming(count: int, ordinal: int) -> Iterator[Trace]:
    """Trace for `count` replicas on a device.

    Raises AnotherCountError when the program declares shards that leave another number.
    """
    outer, _COMPILING.ordinal = _COMPILING.ordinal, ordinal
    try:
        with tracing(count, processes_of(ordinal)) as trace:
            yield trace
    finally:
        _COMPILING.ordinal = outer


def declare_shards(num_ipus: int) -> None:
    """Say that the program being built spans so many IPUs, as a pipeline does."""
    _COMPILING.num_shards = max(_COMPILING.num_shards, num_ipus)
    if _COMPILING.ordinal is None:
        return
    # Tracing further would be in vain: queues and collectives depend on the number.
    if replicas_for(declared_shards(), _COMPILING.ordinal) != num_local_replicas():
        raise AnotherCountError


def declared_shards() -> int:
    """How many IPUs the program being built has said to span."""
    return _COMPILING.num_shards


def replicas_for(num_shards: int, ordinal: int) -> int:
    """Replicas of `num_shards` IPUs each that the device holds here; at least one."""
    # The machine hands out IPUs in powers of two: three shards take four of them.
    per_replica = 1 << (max(num_shards, 1) - 1).bit_length()
    return max(_device.num_ipus(ordinal) // per_replica, 1)


def processes_of(ordinal: int) -> Processes:
    """Which processes run the programs of a device together, as it is configured."""
    options = _device.get_options(ordinal)
    count = options.multi_replica_process_count
    # A configuration for several processes may be tried without the others.
    if count <= 1 or not processes.is_joined():
        return ALONE
    return Processes(options.multi_replica_process_index, count)


def runs_alone(count: int, ordinal: int) -> bool:
    """Whether a program of so many replicas here exchanges nothing with others."""
    return count == 1 and processes_of(ordinal) == ALONE


def shards_of(operations: Iterable[Any]) -> int:
    """The IPUs that operations are spread over."""
    shards = [sharding.get_sharding(op) or [0] for op in operations]
    return max((max(shard) for shard in shards), default=0) + 1


def with_called(operations: Iterable[Any]) -> Iterator[Any]:
    """Operations and those of the functions that they call."""
    for op in operations:
        yield op
        for attribute in op.node_def.attr.values():
            function = op.graph._functions.get(attribute.func.name)
            if function is not None:
                yield from with_called(body_of(function))


def operations_of(graph: Any) -> Iterator[Any]:
    """All operations of a graph and of the functions that it calls."""
    yield from graph.get_operations()
    for function in getattr(graph, "_functions", {}).values():
        yield from body_of(function)


def body_of(function: Any) -> Sequence[Any]:
    """The operations of a function.

    Functions as TensorFlow 1 has them keep no graph; inside TensorFlow there are a few
    still, all of arithmetic.
    """
    graph = getattr(function, "graph", None)
    return () if graph is None else graph.get_operations()


def replicas_of(graph: Any, ordinal: int) -> int:
    """How many replicas of the program traced into `graph` the device holds."""
    num_shards = max(shards_of(operations_of(graph)), _COMPILING.num_shards)
    return replicas_for(num_shards, ordinal)
