"""Text tables: widths, alignment, no trailing blanks."""

from __future__ import annotations

from popple.tools.table import render_table

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
