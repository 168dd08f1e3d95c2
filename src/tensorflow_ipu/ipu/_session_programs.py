"""The IPU programs that a run of a session reaches, handed over for their price.

In an old-style graph, everything on an IPU that a run needs is one program. If it was
built for several replicas it is a function instead, called once for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tensorflow.python.framework import device as device_lib

from . import _modelling, sharding

__all__ = ["REPLICATED", "ordinal_of", "record"]

REPLICATED = "ipu_program_"
"""How the names of functions begin that are called for each replica."""

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
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


def record(graph: Any, roots: Sequence[Any]) -> list[_modelling.TracedProgram]:
    """Hand over what a run of these operations does on IPUs."""
    needed = sharding.dependencies(roots)
    calls = Counter(filter(None, map(_replicated_function, needed)))
    if calls:
        return [
            _modelling.record(name, graph._get_function(name).graph, num_replicas=count)
            for name, count in calls.items()
        ]
    found: list[_modelling.TracedProgram] = []
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


def _replicated_function(op: Any) -> str:
    name = op.get_attr("f").name if op.type in _CALLS else ""
    return name if name.startswith(REPLICATED) else ""


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


def _is_idle(first: Any, op: Any) -> bool:
    if first._is_stateful or first.type == "NoOp":
        return False
    return ordinal_of(first) is not None and ordinal_of(op) is None


def _by_ordinal(ops: Iterable[Any]) -> dict[int, set[Any]]:
    """Operations on IPUs by the number of the device."""
    found: dict[int, set[Any]] = {}
    for op in ops:
        ordinal = ordinal_of(op)
        if ordinal is not None:
            found.setdefault(ordinal, set()).add(op)
    return found


def ordinal_of(op: Any) -> int | None:
    """The number of the IPU device that an operation is on, if it is on one."""
    device = device_lib.DeviceSpec.from_string(op.device or _beside(op))
    return (device.device_index or 0) if device.device_type == "IPU" else None


def _beside(op: Any) -> str:
    """The device of what an operation is to be beside: first values, of variables."""
    if op.type == "Const":
        return ""  # nothing has to be computed for it
    names = {group.decode().removeprefix("loc:@") for group in op.colocation_groups()}
    try:
        others = map(op.graph.get_operation_by_name, names - {op.name})
        return next((other.device for other in others), "")
    except KeyError:
        return ""  # it is outside the function that the operation is in
