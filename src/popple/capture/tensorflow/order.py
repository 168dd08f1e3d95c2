"""The ops of a TensorFlow graph that matter, each behind those it reads from.

Ops that are walked together (those of an old-style loop, those that stand for one op of
the machine) form a unit; units are ordered, and ops within them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from popple.capture.tensorflow.framework import Operation, find_attr
from popple.marks import HALF

Key = Callable[[Operation], Hashable]
"""What ops of one unit have in common; None for an op that is a unit by itself."""

# Ops with a state that may be left out if nobody reads them.
_PASSIVE = (
    "Placeholder",
    "Random",
    "ReadVariableOp",
    "Stack",
    "Stateful",
    "TensorArray",
    "VarHandleOp",
)
_CALLS = frozenset({"StatefulPartitionedCall"})


def changes_something(op: Operation) -> bool:
    """Whether an op has side effects: it writes a variable, uses a queue, prints."""
    if not op.op_def.is_stateful:
        return False
    return op.type in _CALLS or not op.type.startswith(_PASSIVE)


def needed_ops(ops: Iterable[Operation], roots: Iterable[Operation]) -> list[Operation]:
    """The ops that roots need, in the order given."""
    listed = list(ops)
    inside = set(listed)
    waiting = list(roots)
    found: set[Operation] = set()
    while waiting:
        op = waiting.pop()
        if op in inside and op not in found:
            found.add(op)
            # Inputs of an imitation only round what another op writes: no work of the
            # machine.
            waiting += op.control_inputs
            if not _is_imitation(op):
                waiting += [tensor.op for tensor in op.inputs]
    return [op for op in listed if op in found and not _is_imitation(op)]


def _is_imitation(op: Operation) -> bool:
    """Whether an assignment only repeats another one in half precision."""
    return op.type == "AssignVariableOp" and bool(find_attr(op, HALF))


def units_in_order(
    ops: Sequence[Operation], key_of: Key
) -> list[tuple[Hashable, list[Operation]]]:
    """Units with their keys, each behind those it reads from; most already are."""
    keys = {op: key_of(op) or op for op in ops}
    members: dict[Hashable, list[Operation]] = {}
    for op, key in keys.items():
        members.setdefault(key, []).append(op)
    order: list[Hashable] = []
    done: set[Hashable] = set()
    for key in members:
        _append_with_sources(key, keys, members, order, done)
    return [(None if _is_single(key, members) else key, members[key]) for key in order]


def _is_single(key: Hashable, members: Mapping[Hashable, list[Operation]]) -> bool:
    return members[key] == [key]


def _append_with_sources(
    key: Hashable,
    keys: Mapping[Operation, Hashable],
    members: Mapping[Hashable, list[Operation]],
    order: list[Hashable],
    done: set[Hashable],
) -> None:
    """Append a unit behind its sources, depth first without recursion."""
    # A graph may be deeper than Python's recursion limit; `begun` also ends cycles
    # between units.
    path = [(key, iter(_sources(key, keys, members)))]
    begun = {key}
    while path:
        current, sources = path[-1]
        following = next((s for s in sources if s not in done and s not in begun), None)
        if following is not None:
            begun.add(following)
            path.append((following, iter(_sources(following, keys, members))))
            continue
        path.pop()
        if current not in done:
            done.add(current)
            order.append(current)


def _sources(
    key: Hashable,
    keys: Mapping[Operation, Hashable],
    members: Mapping[Hashable, list[Operation]],
) -> Iterable[Hashable]:
    for op in members[key]:
        for tensor in op.inputs:
            source = keys.get(tensor.op)
            if source is not None and source != key:
                yield source
