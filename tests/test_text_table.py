"""Text tables: widths, sides, no trailing blanks; tables in Markdown."""

from __future__ import annotations

import pytest

from popple.text_table import (
    LEFT,
    RIGHT,
    Column,
    align_rows,
    render_markdown_table,
    render_table,
)

EXPECTED = """\
name    n
----  ---
a       1
bb    100"""


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [("a", "1"), ("bb", "100")]
    assert render_table(("name", "n"), rows, right_aligned=("n",)) == EXPECTED


def test_a_table_without_rows_is_its_header() -> None:
    assert render_table(("name", "n"), []) == "name  n\n----  -"


def test_rows_are_indented_and_end_with_text() -> None:
    lines = align_rows(iter([("a", "b"), ("long", "")]), (LEFT, LEFT), "  ")
    assert lines == ["  a     b", "  long"]


def test_no_rows_are_no_lines() -> None:
    assert align_rows([], (LEFT, RIGHT)) == []


def test_a_column_has_a_least_width() -> None:
    assert align_rows([("a", "1")], (Column(least=3), Column(True, 4))) == ["a       1"]


def test_a_long_cell_loses_its_beginning() -> None:
    # Six characters: three dots and the last three.
    rows = [("abcdefgh", "x"), ("abcdef", "y")]
    assert align_rows(rows, (Column(most=6), LEFT)) == ["...fgh  x", "abcdef  y"]


def test_a_row_with_too_few_cells() -> None:
    with pytest.raises(ValueError, match="zip"):
        align_rows([("a", "b"), ("c",)], (LEFT, LEFT))


def test_markdown() -> None:
    expected = "| a | b |\n| --- | --- |\n| x\\|y | z |"
    assert render_markdown_table(("a", "b"), [("x|y", "z")]) == expected
