"""The depth-first numbers of a program's steps, shared by simulation and reports.

Steps of `main` come first, then those of each function in order. A step that stands
in two places of the tree has two numbers, since its code exists twice; a function has
one set of numbers however often it is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from popple.program.parts import children_of, label_of
from popple.program.steps import Call, Step

MAIN = "main"
"""The name under which the program's own steps are filed beside its functions."""


class NumberedStep(NamedTuple):
    """A step at its place in the tree.

    `parent_id` is -1 for the roots, `path` reads `main/train/loop/matmul` and
    `end_id` is one past the last step inside this one.
    """

    id: int
    step: Step
    parent_id: int
    path: str
    end_id: int


Numbering: TypeAlias = tuple[NumberedStep, ...]
"""All steps of a program; a step's number is its index."""


def number_steps(main: Step, functions: Mapping[str, Step]) -> Numbering:
    """Every step of main and of all functions, in depth-first order."""
    rows: list[NumberedStep] = []
    _number(main, -1, MAIN, rows)
    for name, body in functions.items():
        _number(body, -1, name, rows)
    return tuple(rows)


def root_ids(steps: Numbering) -> Mapping[str, int]:
    """The number of main's first step and of each function's, by name."""
    return {row.path: row.id for row in steps if row.parent_id < 0}


def child_ids(steps: Numbering, step_id: int) -> Iterator[int]:
    """The steps directly inside a step, in order."""
    # Numbers are depth first, so the next sibling begins where a child ends.
    child, end = step_id + 1, steps[step_id].end_id
    while child < end:
        yield child
        child = steps[child].end_id


def call_order(functions: Mapping[str, Step]) -> tuple[str, ...]:
    """Names of functions, callees before their callers. Calls must not recurse."""
    # A dict as an ordered set. A function enters after its callees; entering it before
    # would put it ahead of them.
    order: dict[str, None] = {}

    def visit(step: Step) -> None:
        if isinstance(step, Call):
            visit_function(step.function)
        for child in children_of(step):
            visit(child)

    def visit_function(name: str) -> None:
        if name not in order:
            visit(functions[name])
            order[name] = None

    for name in functions:
        visit_function(name)
    return tuple(order)


def _number(step: Step, parent: int, path: str, rows: list[NumberedStep]) -> None:
    number = len(rows)
    row = NumberedStep(number, step, parent, path, number + 1)
    rows.append(row)
    children = children_of(step)
    for child in children:
        _number(child, number, f"{path}/{label_of(child)}", rows)
    # Rows are tuples: the end is known only once all children have numbers.
    if children:
        rows[number] = row._replace(end_id=len(rows))
