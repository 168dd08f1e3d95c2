"""Functions of a graph: calls, loops and branches that run them, and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from popple.errors import GraphError
from popple.graph.graph import Graph, Op

LOOPS = frozenset({"repeat", "while"})
"""Ops whose function gives itself its first arguments the next time."""


def functions_of(op: Op) -> tuple[str, ...]:
    """Names of the functions that an op runs; most ops run none."""
    if op.kind == "branch":
        names = op.attrs["functions"]
        return tuple(str(name) for name in names) if isinstance(names, tuple) else ()
    if op.kind == "while":
        return str(op.attrs["function"]), str(op.attrs["condition"])
    return (str(op.attrs["function"]),) if op.kind in ("call", "repeat") else ()


def arguments_of(op: Op) -> tuple[str, ...]:
    """The values that an op gives to each of its functions."""
    return op.inputs[1:] if op.kind == "branch" else op.inputs


def num_sites(graph: Graph) -> Counter[str]:
    """In how many places each function is run, by ops of the graph and its functions.

    Rounds of a loop are one place.
    """
    bodies = (graph, *graph.functions.values())
    return Counter(n for body in bodies for op in body.ops for n in functions_of(op))


def function_order(graph: Graph) -> tuple[str, ...]:
    """Names of all functions, those that are run before those that run them."""
    order: dict[str, None] = {}
    begun: set[str] = set()

    def visit(name: str) -> None:
        if name in order:
            return
        if name in begun:
            raise GraphError(
                f"function {name!r} runs itself.",
                where=f"graph {graph.name!r}",
                remedy="The machine has no stack: write a loop instead.",
            )
        begun.add(name)
        for op in graph.functions[name].ops:
            for callee in functions_of(op):
                visit(callee)
        order[name] = None

    for name in graph.functions:
        visit(name)
    return tuple(order)


def qualified(function: str, name: str) -> str:
    """The name of an op or value of a function among those of the whole graph."""
    return f"{function}/{name}"


def all_ops(graph: Graph) -> Iterator[tuple[Op, Graph]]:
    """Every op, and the graph or function that it stands in.

    Ops of functions have their qualified names, and the chip and stage of the first op
    that runs them.
    """
    yield from ((op, graph) for op in graph.ops)
    places = _first_places(graph)
    for name in graph.functions:
        body, place = graph.body(name), places.get(name, (0, 0))
        for op in body.ops:
            known = replace(op, name=qualified(name, op.name)).with_place(*place)
            yield known, body


def _first_places(graph: Graph) -> dict[str, tuple[int, int]]:
    """(chip, stage) of the first op that runs each function, directly or not."""
    places: dict[str, tuple[int, int]] = {}

    def visit(ops: Iterable[Op], place: tuple[int, int] | None) -> None:
        for op in ops:
            for name in functions_of(op):
                if name not in places:
                    places[name] = place or (op.chip, op.stage)
                    visit(graph.functions[name].ops, places[name])

    visit(graph.ops, None)
    return places
