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

__all__ = ["REPLICATED", "record"]

REPLICATED = "ipu_program_"
"""How the names of functions begin that are called for each replica."""

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
# What fills variables from the host: nothing of it is compiled.
_PASSIVE = frozenset(
    {
        "AssignVariableOp",
        "Const",
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
    for ordinal, ops in _by_ordinal(needed).items():
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


def _by_ordinal(ops: Iterable[Any]) -> dict[int, set[Any]]:
    """Operations on IPUs by the number of the device."""
    found: dict[int, set[Any]] = {}
    for op in ops:
        device = device_lib.DeviceSpec.from_string(op.device)
        if device.device_type == "IPU":
            found.setdefault(device.device_index or 0, set()).add(op)
    return found
