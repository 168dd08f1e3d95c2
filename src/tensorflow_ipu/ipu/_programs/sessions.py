"""What sessions of TensorFlow 1 do beside running: hold the IPUs, undo what failed.

A run that reaches an operation on an IPU attaches to the device first, as programs that
configure it "on demand" expect; one that reaches none leaves the device alone.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import device as device_lib

from popple.engine.tensorflow import ALONE, processes

from .. import _device, _errors, _modelling, sharding
from .._modelling import TracedProgram, runs
from . import assertions, compilation, outside_compilation

_REACHED = "_popple_reached"
# How the names of functions begin that are called for each replica.
_REPLICATED = "ipu_program_"

# What fills variables from the host: nothing of it is compiled.
_PASSIVE = frozenset(
    {
        "AssignVariableOp",
        "Const",
        "Fill",
        "Identity",
        "NoOp",
        "Placeholder",
        "ReadVariableOp",
        "VarHandleOp",
        "VarIsInitializedOp",
    }
)
_ARRAY = "TensorArrayV3"
_OLD_VARIABLES = frozenset({"Variable", "VariableV2"})
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# A variable on the device may be initialised from the host without the device.
_BOOKKEEPING = frozenset({"AssignVariableOp", "NoOp", "VarHandleOp"})


def run(
    stock: Callable[..., Any],
    graph: tf.Graph,
    fetches: object,
    *args: Any,
    is_soft: bool = False,
    **kwargs: Any,
) -> Any:
    """Run `fetches` with a session's own `run`.

    With `is_soft` what no IPU can do may be done by the host.
    """
    reached = _reached(graph, fetches)
    if not is_soft:
        _check_variables(reached.misplaced)
    # Attached here and not when the graph is built, as the device need not exist then.
    for ordinal, num_shards in reached.places.items():
        check_shards(num_shards, ordinal)
        _device.attach(ordinal)
    if not reached.programs:
        runs.touch(reached.variables)
    if reached.programs and _is_of_several_processes(reached):
        args, kwargs = _as_one_step(graph, fetches, args, kwargs)
    with _errors.in_plain_words(), runs.running(*reached.programs):
        return assertions.run_session(stock, graph, fetches, *args, **kwargs)


def _is_of_several_processes(reached: _Reached) -> bool:
    return any(compilation.processes_of(ordinal) != ALONE for ordinal in reached.places)


def _as_one_step(
    graph: tf.Graph, fetches: object, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a session's `run` that make it one step of all processes."""
    names = [op.name for op in _operations(graph, fetches)]
    # `run(fetches, feed_dict, options, run_metadata)`.
    given = dict(zip(("feed_dict", "options", "run_metadata"), args, strict=False))
    given |= kwargs
    given["options"] = processes.run_options(given.get("options"), names)
    return (), given


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
    """What a run of `operations` reaches.

    `places` says over how many IPUs each device is sharded, by its number. The
    variables in `misplaced` are on IPUs, which have no kernel for them.
    """

    graph: tf.Graph
    operations: Sequence[Any]
    places: Mapping[int, int]
    variables: Sequence[str]
    misplaced: Sequence[Any] = ()

    @functools.cached_property
    def programs(self) -> Sequence[TracedProgram]:
        """What runs on IPUs, compiled when it is first asked for: IPUs come first."""
        return _record_programs(self.graph, self.operations) if self.places else []


def _reached(graph: tf.Graph, fetches: object) -> _Reached:
    """What a run of these fetches reaches; it is looked for once."""
    # Kept on the graph, to go with it; a session may be run thousands of times.
    known: dict[Any, _Reached] = getattr(graph, _REACHED, {})
    setattr(graph, _REACHED, known)
    operations = list(_operations(graph, fetches))
    outside_compilation.check(graph, operations)
    # The version grows with every operation that is added.
    key = (graph.version, *(op.name for op in operations))
    if key not in known:
        known[key] = _find_reached(graph, operations)
    return known[key]


def _find_reached(graph: tf.Graph, operations: list[Any]) -> _Reached:
    needed = list(sharding.dependencies(operations))
    places = _find_places(needed)
    variables = [op.name for op in needed if op.type == "VarHandleOp"]
    misplaced = [op for op in needed if _is_misplaced(op)]
    return _Reached(graph, operations, places, variables, misplaced)


def _is_misplaced(op: tf.Operation) -> bool:
    """Whether it is a variable of old style, no resource, on an IPU."""
    return op.type in _OLD_VARIABLES and _ordinal_of(op) is not None


def _check_variables(misplaced: Sequence[Any]) -> None:
    """Refuse variables that an IPU cannot hold, in words that programs look for."""
    for op in misplaced:
        beside = [each for each in op.graph.get_operations() if _is_beside(each, op)]
        kinds = sorted({each.type for each in (op, *beside)})
        raise _errors.error(
            tf.errors.InvalidArgumentError,
            f"Cannot assign a device for operation '{op.name}': it is on {op.device}, "
            "and no supported kernel for IPU devices is available.\n"
            "Colocation Debug Info:\n"
            + "".join(f"{kind}: {_kernels_of(kind)}\n" for kind in kinds)
            + "An IPU holds resource variables: make it in a variable scope with "
            "use_resource=True, or in an ipu_scope.",
        )


def _is_beside(op: tf.Operation, other: tf.Operation) -> bool:
    return f"loc:@{other.name}".encode() in op.colocation_groups() and op is not other


def _kernels_of(kind: str) -> str:
    return "CPU" if kind.startswith(("Assign", "Variable")) else "CPU IPU"


def _operations(graph: tf.Graph, fetches: object) -> Iterable[Any]:
    for fetch in _leaves(fetches):
        try:
            element = graph.as_graph_element(fetch)
        except (TypeError, ValueError, KeyError):
            continue  # the session says what is wrong with it
        yield element if isinstance(element, tf.Operation) else element.op


def _leaves(fetches: object) -> Iterable[Any]:
    """What is fetched; hooks of sessions are keys, which have no order."""
    if isinstance(fetches, Mapping):
        fetches = list(fetches.values())
    if not isinstance(fetches, list | tuple):
        return tf.nest.flatten(fetches, expand_composites=True)
    return (leaf for fetch in fetches for leaf in _leaves(fetch))


def _find_places(needed: Iterable[Any]) -> dict[int, int]:
    places: dict[int, int] = {}
    for op in _computing(needed):
        ordinal = _ordinal_of(op)
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


def _record_programs(graph: tf.Graph, roots: Sequence[Any]) -> list[TracedProgram]:
    """Hand over what a run of these operations does on IPUs, to be modelled.

    In an old-style graph, everything on an IPU that a run needs is one program. If it
    was built for several replicas it is a function instead, called for each of them.
    """
    needed = sharding.dependencies(roots)
    calls = Counter(filter(None, map(_replicated_function, needed)))
    if calls:
        num_processes = compilation.processes_of(0).count
        return [
            _modelling.record(
                name,
                graph._get_function(name).graph,
                num_replicas=count * num_processes,
            )
            for name, count in calls.items()
        ]
    found: list[TracedProgram] = []
    for ordinal, ops in _by_ordinal(_carried_out(roots)).items():
        inside = [op for op in graph.get_operations() if op in ops]
        if any(op.type not in _PASSIVE for op in inside):
            name = f"session_{'_'.join(sorted(root.name for root in roots))[:60]}"
            results = [root.outputs[0] if root.outputs else root for root in roots]
            program = _modelling.record(
                name, graph, ops=inside, results=results, ordinal=ordinal
            )
            found.append(program)
    return found


def _replicated_function(op: tf.Operation) -> str:
    name = op.get_attr("f").name if op.type in _CALLS else ""
    return name if name.startswith(_REPLICATED) else ""


def _carried_out(roots: Sequence[Any]) -> set[Any]:
    """Operations that a run needs.

    But for those on IPUs that the host only waits for: they change nothing, and nobody
    takes anything from them.
    """
    found: set[Any] = set()
    waiting = list(roots)
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            waiting += [tensor.op for tensor in op.inputs]
            waiting += [first for first in op.control_inputs if not _is_idle(first, op)]
    return found


def _is_idle(first: Any, op: tf.Operation) -> bool:
    if first._is_stateful or first.type == "NoOp":
        return False
    return _ordinal_of(first) is not None and _ordinal_of(op) is None


def _by_ordinal(ops: Iterable[Any]) -> dict[int, set[Any]]:
    """Operations on IPUs by the number of the device."""
    found: dict[int, set[Any]] = {}
    for op in ops:
        ordinal = _ordinal_of(op)
        if ordinal is not None:
            found.setdefault(ordinal, set()).add(op)
    return found


def _ordinal_of(op: tf.Operation) -> int | None:
    """The number of the IPU device that an operation is on, if it is on one."""
    device = device_lib.DeviceSpec.from_string(op.device or _beside(op))
    return (device.device_index or 0) if device.device_type == "IPU" else None


def _beside(op: tf.Operation) -> str:
    """The device of what an operation is to be beside: first values, of variables."""
    if op.type == "Const":
        return ""  # nothing has to be computed for it
    if op.type == _ARRAY:  # is put where it is first written to
        users = (user for tensor in op.outputs for user in tensor.consumers())
        return next((user.device for user in users if user.device), "")
    names = {group.decode().removeprefix("loc:@") for group in op.colocation_groups()}
    try:
        others = map(op.graph.get_operation_by_name, names - {op.name})
        return next((other.device or _of_array(other) for other in others), "")
    except KeyError:
        return ""  # it is outside the function that the operation is in


def _of_array(op: tf.Operation) -> str:
    return _beside(op) if op.type == _ARRAY else ""
