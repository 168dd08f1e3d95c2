"""The rules every Graph obeys; `verify` raises for the first one broken."""

from __future__ import annotations

from popple.errors import GraphError
from popple.graph.graph import Graph, Op, Role
from popple.graph.ops import get_op

_GIVEN = frozenset({Role.INPUT, Role.WEIGHT, Role.STATE, Role.CONSTANT})


def verify(graph: Graph) -> None:
    """Raise GraphError unless the graph is well formed.

    Rules: names are unique and declared; a value is defined before it is used and
    at most once; storage chains end and stay on one dtype-compatible owner; ops
    satisfy their OpDef; chips lie within the execution's chips.
    """
    _verify_values(graph)
    defined = {v.name for v in graph.values.values() if v.role in _GIVEN}
    for op in graph.ops:
        _verify_op(graph, op, defined)
        defined.update(op.outputs)
    for name in graph.outputs:
        if name not in defined:
            raise _error(graph, f"output %{name} is never computed")


def _verify_values(graph: Graph) -> None:
    for name, value in graph.values.items():
        if name != value.name:
            raise _error(graph, f"%{value.name} is filed under %{name}")
        seen = {name}
        while value.storage:
            if value.storage not in graph.values:
                raise _error(graph, f"%{name} shares memory with an unknown value")
            if value.storage in seen:
                raise _error(graph, f"the storage of %{name} is a circle")
            seen.add(value.storage)
            value = graph.values[value.storage]


def _verify_op(graph: Graph, op: Op, defined: set[str]) -> None:
    for name in op.inputs:
        if name not in defined:
            raise _error(graph, f"uses %{name} before it is defined", op)
    for name in op.outputs:
        if name not in graph.values:
            raise _error(graph, f"result %{name} is not declared", op)
        if name in defined:
            raise _error(graph, f"defines %{name} a second time", op)
    if not 0 <= op.chip < graph.execution.num_chips:
        count = graph.execution.num_chips
        raise _error(graph, f"is on chip {op.chip} of {count}", op)
    # Attributes need no check here: an op with wrong ones cannot be made.
    if complaint := get_op(op.kind).complaint(graph.signature(op)):
        raise _error(graph, complaint, op)


def _error(graph: Graph, what: str, op: Op | None = None) -> GraphError:
    subject = f"{op.kind} %{op.name} " if op else ""
    place = op.line if op and op.line else f"graph {graph.name!r}"
    return GraphError(f"{subject}{what}.", where=place)
