"""What sessions of TensorFlow 1 do beside running: hold the IPUs, undo what failed.

A run that reaches an operation on an IPU attaches to the device first, as programs that
configure it "on demand" expect; one that reaches none leaves the device alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from . import _asserts, _device, _errors, _outside, _runs, _session_programs, sharding
from ._modelling import TracedProgram

_REACHED = "_popple_reached"
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# A variable on the device may be initialised from the host without the device.
_BOOKKEEPING = frozenset({"AssignVariableOp", "NoOp", "VarHandleOp"})


def run(
    stock: Callable[..., Any], graph: Any, fetches: Any, *args: Any, **kwargs: Any
) -> Any:
    """Run `fetches` with a session's own `run`."""
    reached = _reached(graph, fetches)
    for ordinal, num_shards in reached.places.items():
        check_shards(num_shards, ordinal)
        _device.attach(ordinal)
    if not reached.programs:
        _runs.touch(reached.variables)
    with _errors.in_plain_words(), _runs.running(*reached.programs):
        return _asserts.run_session(stock, graph, fetches, *args, **kwargs)


def check_shards(num_shards: int, ordinal: int) -> None:
    """Refuse a program that spans more IPUs than its device has."""
    num_ipus = _device.num_ipus(ordinal)
    if num_shards > num_ipus:
        raise _errors.error(
            tf.errors.InternalError,
            f"Trying to compile a graph for {num_shards} IPUs on /device:IPU:{ordinal},"
            f" which has {num_ipus}. Configure it with as many as the program is"
            " sharded over.",
        )


@dataclass(frozen=True)
class _Reached:
    """What a run reaches.

    `places` says over how many IPUs each device is sharded, by its number.
    """

    places: Mapping[int, int]
    programs: Sequence[TracedProgram]
    variables: Sequence[str]


def _reached(graph: Any, fetches: Any) -> _Reached:
    """What a run of these fetches reaches; it is looked for once."""
    known: dict[Any, _Reached] = getattr(graph, _REACHED, {})
    setattr(graph, _REACHED, known)
    operations = list(_operations(graph, fetches))
    _outside.check(graph, operations)
    key = (graph.version, *(op.name for op in operations))
    if key not in known:
        known[key] = _find_reached(graph, operations)
    return known[key]


def _find_reached(graph: Any, operations: list[Any]) -> _Reached:
    needed = list(sharding.dependencies(operations))
    places = _find_places(needed)
    programs = _session_programs.record(graph, operations) if places else []
    variables = [op.name for op in needed if op.type == "VarHandleOp"]
    return _Reached(places, programs, variables)


def _operations(graph: Any, fetches: Any) -> Iterable[Any]:
    for fetch in _leaves(fetches):
        try:
            element = graph.as_graph_element(fetch)
        except (TypeError, ValueError, KeyError):
            continue  # the session says what is wrong with it
        yield element if isinstance(element, tf.Operation) else element.op


def _leaves(fetches: Any) -> Iterable[Any]:
    """What is fetched; hooks of sessions are keys, which have no order."""
    if isinstance(fetches, Mapping):
        fetches = list(fetches.values())
    if not isinstance(fetches, list | tuple):
        return tf.nest.flatten(fetches, expand_composites=True)
    return (leaf for fetch in fetches for leaf in _leaves(fetch))


def _find_places(needed: Iterable[Any]) -> dict[int, int]:
    places: dict[int, int] = {}
    for op in _computing(needed):
        ordinal = _session_programs.ordinal_of(op)
        if ordinal is not None:
            num_shards = max(sharding.get_sharding(op) or [0]) + 1
            places[ordinal] = max(places.get(ordinal, 1), num_shards)
    return places


def _computing(operations: Iterable[Any]) -> Iterable[Any]:
    """The operations that compute something, those of called functions too."""
    for op in operations:
        if op.type in _CALLS:
            name = op.get_attr("f").name
            function = op.graph._get_function(name)
            yield from _computing(function.graph.get_operations())
        elif op.type not in _BOOKKEEPING:
            yield op
