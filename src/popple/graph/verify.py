"""Verify that a Graph is well formed; the first rule that is broken raises."""

from __future__ import annotations

from popple.errors import GraphError, suggest
from popple.graph.functions import LOOPS, arguments_of, function_order, functions_of
from popple.graph.graph import Graph, Op, Role
from popple.graph.ops import get_op
from popple.graph.types import DType, TensorType

_GIVEN = frozenset(Role) - {Role.ACTIVATION}
_OF_FUNCTIONS = frozenset({Role.ARGUMENT, Role.CONSTANT, Role.ACTIVATION})
_SELECTORS = frozenset({DType.BOOL, DType.I32, DType.U32})


def verify(graph: Graph, before: Graph | None = None) -> None:
    """Raise GraphError unless the graph is well formed.

    Rules: names are unique and declared; a value is defined before it is used and
    at most once; storage chains end and stay on one dtype-compatible owner; ops
    satisfy their OpDef; chips lie within the execution's chips. Functions exist, are
    given what they take, have nothing but arguments and constants to begin with, stand
    on no chip of their own and do not run themselves. Ops of a well-formed graph
    `before` over values of it are not held against their OpDef again.
    """
    for name, function in graph.functions.items():
        if name != function.name:
            raise _error(graph, f"function {function.name!r} is filed under {name!r}")
        if function.functions:
            raise _error(function, "a function has no functions of its own")
        _verify_roles(function)
        _verify_graph(graph.body(name))
    # Raises for functions that run themselves.
    function_order(graph)
    _verify_graph(graph, before)


def _verify_graph(graph: Graph, before: Graph | None = None) -> None:
    _verify_values(graph)
    defined = {v.name for v in graph.values.values() if v.role in _GIVEN}
    # By identity: both graphs keep their ops alive.
    known_ops = {id(op) for op in before.ops} if before else ()
    for op in graph.ops:
        is_known = id(op) in known_ops and _has_values_of(op, graph, before)
        _verify_op(graph, op, defined, is_known)
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


def _verify_roles(function: Graph) -> None:
    for value in function.values.values():
        if value.role not in _OF_FUNCTIONS:
            role = value.role.value
            raise _error(function, f"%{value.name} is a {role}, which must be given")
    for op in function.ops:
        # A function may be run from several chips: its place is that of its caller.
        if op.chip or op.stage:
            raise _error(function, "has a chip or stage inside a function", op)


def _verify_op(graph: Graph, op: Op, defined: set[str], is_known: bool) -> None:
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
    if not is_known and (complaint := get_op(op.kind).complaint(graph.signature(op))):
        raise _error(graph, complaint, op)
    for name in functions_of(op):
        if name not in graph.functions:
            near = suggest(name, graph.functions)
            raise _error(graph, f"runs the unknown function {name!r}", op, near)
        _verify_run(graph, op, graph.functions[name])


def _has_values_of(op: Op, graph: Graph, before: Graph | None) -> bool:
    """Whether the operands and results of an op are those of another graph."""
    if before is None:
        return False
    known, values = before.values, graph.values
    return all(values[n] is known.get(n) for n in (*op.inputs, *op.outputs))


def _verify_run(graph: Graph, op: Op, function: Graph) -> None:
    """The types that an op gives to a function and takes from it are the function's."""
    given = [graph.type_of(name) for name in arguments_of(op)]
    taken = [function.type_of(name) for name in function.arguments]
    if given != taken:
        what = (
            f"gives {_types(given)} to {function.name!r}, which takes {_types(taken)}"
        )
        raise _error(graph, what, op)
    made = [function.type_of(name) for name in function.outputs]
    if op.kind == "while" and function.name == op.attrs["condition"]:
        if made != [TensorType(DType.BOOL, ())]:
            raise _error(graph, f"is decided by {_types(made)}, not by a bool[]", op)
        return
    wanted = [graph.type_of(name) for name in op.outputs]
    if made != wanted:
        what = f"takes {_types(wanted)} from {function.name!r}, which gives "
        raise _error(graph, f"{what}{_types(made)}", op)
    if op.kind in LOOPS and given[: len(made)] != made:
        what = f"carries {_types(given[: len(made)])}, but its function gives "
        raise _error(graph, f"{what}{_types(made)}", op)
    selector = graph.type_of(op.inputs[0]) if op.kind == "branch" else None
    if selector and (selector.num_elements != 1 or selector.dtype not in _SELECTORS):
        raise _error(graph, f"is decided by {selector}, not by one bool or integer", op)


def _types(types: list[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"


def _error(
    graph: Graph, what: str, op: Op | None = None, remedy: str = ""
) -> GraphError:
    subject = f"{op.kind} %{op.name} " if op else ""
    place = op.line if op and op.line else f"graph {graph.name!r}"
    return GraphError(f"{subject}{what}.", where=place, remedy=remedy)
