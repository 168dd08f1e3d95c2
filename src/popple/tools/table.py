"""Text tables for the terminal: columns as wide as their widest cell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def render_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    right_aligned: Collection[str] = (),
) -> str:
    """A header, a rule and the rows, two blanks between columns.

    Columns whose heading is in `right_aligned` hold numbers.
    """
    cells = [tuple(header), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, tuple("-" * width for width in widths))
    signs = [">" if heading in right_aligned else "<" for heading in header]
    return "\n".join(_render_row(row, widths, signs) for row in cells)


def _render_row(row: Sequence[str], widths: Sequence[int], signs: Sequence[str]) -> str:
    padded = (
        f"{cell:{sign}{width}}"
        for cell, width, sign in zip(row, widths, signs, strict=True)
    )
    return "  ".join(padded).rstrip()
