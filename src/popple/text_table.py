"""Rows of text as aligned lines for the terminal, or as a table in Markdown or HTML.

In: rows of cells, all of the same length. Out: lines, or one text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape

Row = Sequence[str]


@dataclass(frozen=True)
class Column:
    """How a column is laid out: on which side, and within which widths."""

    is_right: bool = False
    least: int = 0
    most: int | None = None

    def shorten(self, cell: str) -> str:
        """A cell that is not too wide. Names differ at their ends: the start goes."""
        if self.most is None or len(cell) <= self.most:
            return cell
        return "..." + cell[3 - self.most :]


LEFT, RIGHT = Column(), Column(is_right=True)


def align_rows(
    rows: Iterable[Row], columns: Sequence[Column], indent: str = ""
) -> list[str]:
    """A line for each row: columns as wide as their widest cell, two blanks between."""
    cells = [
        [column.shorten(cell) for cell, column in zip(row, columns, strict=True)]
        for row in rows
    ]
    widths = [
        max(column.least, *map(len, texts))
        for column, texts in zip(columns, zip(*cells, strict=True), strict=bool(cells))
    ]
    padded = (
        [
            cell.rjust(width) if column.is_right else cell.ljust(width)
            for cell, column, width in zip(row, columns, widths, strict=True)
        ]
        for row in cells
    )
    return [(indent + "  ".join(row)).rstrip() for row in padded]


def render_table(
    header: Row, rows: Iterable[Row], right_aligned: Collection[str] = ()
) -> str:
    """A header, a rule and the rows.

    Columns whose heading is in `right_aligned` hold numbers.
    """
    cells = [tuple(header), *map(tuple, rows)]
    rule = tuple("-" * max(map(len, texts)) for texts in zip(*cells, strict=True))
    columns = [Column(heading in right_aligned) for heading in header]
    return "\n".join(align_rows([cells[0], rule, *cells[1:]], columns))


def render_markdown_table(header: Row, rows: Iterable[Row]) -> str:
    """A header, a rule and the rows; cells may hold anything but line breaks."""
    lines = [tuple(header), ("---",) * len(header)]
    lines += [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def render_html_table(title: str, rows: Iterable[Row]) -> str:
    """A title over rows, as notebooks show an object."""
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"
