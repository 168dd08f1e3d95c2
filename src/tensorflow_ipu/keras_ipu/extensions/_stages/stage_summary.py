"""The table that `print_pipeline_stage_assignment_summary` prints.

In: the assignments of a model. Out: lines of text, handed one by one to a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["CALLS", "LAYERS", "Columns", "print_summary"]

Rows = Callable[[Any], list[list[str]]]


def _rows_of_call(assignment: Any) -> list[list[str]]:
    layer = assignment.layer
    first, *others = [each.name for each in assignment.inbound_layers] or [""]
    name = f"{layer.name} ({type(layer).__name__}) ({assignment.node_index})"
    row = [name, first, str(assignment.pipeline_stage)]
    return [row, *(["", other, ""] for other in others)]


def _rows_of_layer(assignment: Any) -> list[list[str]]:
    layer = assignment.layer
    return [[f"{layer.name} ({type(layer).__name__})", str(assignment.pipeline_stage)]]


@dataclass(frozen=True)
class Columns:
    """The columns of a table: titles, right edges as parts of the width, content."""

    titles: list[str]
    edges: list[float]
    line_length: int
    rows: Rows


CALLS = Columns(
    ["Layer (type) (node index)", "Input Layers", "Pipeline Stage"],
    [0.4, 0.8, 1.0],
    89,
    _rows_of_call,
)
LAYERS = Columns(["Layer (type)", "Pipeline Stage"], [0.5, 1.0], 60, _rows_of_layer)


def print_summary(
    name: str,
    assignments: Sequence[Any],
    columns: Columns,
    line_length: int | None,
    print_fn: Callable[[str], Any] | None,
) -> None:
    """Hand the lines of the table to `print_fn`, or print them."""
    width = line_length or columns.line_length
    edges = [int(width * edge) for edge in columns.edges]
    write = print_fn or print
    write(f'Model: "{name}"')
    write("_" * width)
    write(_line(columns.titles, edges))
    write("=" * width)
    _write_rows(assignments, columns, edges, write)


def _write_rows(
    assignments: Sequence[Any],
    columns: Columns,
    edges: list[int],
    write: Callable[[str], Any],
) -> None:
    width = edges[-1]
    for index, assignment in enumerate(assignments):
        if assignment.is_nested_model:
            write(f'Nested Model: "{assignment.nested_model.name}"')
            write("-" * width)
            inner = assignment.pipeline_stage_assignments
            _write_rows(inner, columns, edges, write)
            continue
        for row in columns.rows(assignment):
            write(_line(row, edges))
        following = assignments[index + 1 : index + 2]
        ends = not following or following[0].is_nested_model
        write(("=" if ends else "_") * width)


def _line(row: Sequence[str], edges: Sequence[int]) -> str:
    """The texts of a row, each cut and filled up to the right edge of its column."""
    line = ""
    for text, edge in zip(row, edges, strict=True):
        line = f"{line[:-1]} {text}" if line else text
        line = line[:edge].ljust(edge)
    return line
