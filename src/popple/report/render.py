"""Render the summary of a report as the text that `popple report DIR` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from popple.report.parts.extras import Operation
from popple.report.query import (
    bytes_by_category,
    share_of_run,
    summarize,
    summary_groups,
)
from popple.report.read import Report
from popple.text_table import LEFT, Column, align_rows
from popple.units import render_bytes, render_count, render_percent

# Fixed, not that of the terminal: the same report gives the same text anywhere.
_WIDTH = 100
_INDENT = "  "
_NAME, _KIND = Column(least=44, most=44), Column(least=16, most=16)
_BYTES, _CYCLES, _PERCENT = Column(True, 10), Column(True, 13), Column(True, 7)
_NUM_CATEGORIES = 8


def render_summary(report: Report) -> str:
    """A page of aligned plain text, at most 100 columns wide."""
    summary = summarize(report)
    blocks = [[f"{summary.title}, written by {summary.generator}"]]
    for group in summary_groups(summary):
        blocks.append([group.name, *_aligned(group.rows)])
    blocks.append(_category_lines(report))
    blocks.append(_operation_lines(report, summary.costliest))
    blocks.append(_note_lines(summary.notes))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [_cut(line) for line in align_rows(rows, (LEFT, LEFT), _INDENT)]


def _category_lines(report: Report) -> list[str]:
    sums = {name: int(part.sum()) for name, part in bytes_by_category(report).items()}
    if not sums:
        return []
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    shown, rest = ordered[:_NUM_CATEGORIES], ordered[_NUM_CATEGORIES:]
    if rest:
        # So that the shares of all lines add up to everything.
        shown.append((f"{len(rest)} others", sum(size for _, size in rest)))
    everything = sum(sums.values())
    rows = (
        (name, render_bytes(size), render_percent(size / everything))
        for name, size in shown
    )
    columns = (LEFT, _BYTES, _PERCENT)
    return ["Memory by category", *align_rows(rows, columns, _INDENT)]


def _operation_lines(report: Report, costliest: Sequence[Operation]) -> list[str]:
    if not costliest:
        return []
    heading = ("operation", "kind", "cycles", "of run", "bound by")
    rows = (
        (
            each.name,
            each.kind,
            render_count(each.cycles),
            render_percent(share_of_run(report, each)),
            each.bound_by,
        )
        for each in costliest
    )
    # Fixed widths: pages of two reports can be compared line by line.
    columns = (_NAME, _KIND, _CYCLES, _PERCENT, LEFT)
    lines = align_rows([heading, *rows], columns, _INDENT)
    return ["Costliest operations", *map(_cut, lines)]


def _note_lines(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    wrapped = [
        textwrap.fill(note, _WIDTH, initial_indent="  ", subsequent_indent="    ")
        for note in notes
    ]
    return ["Notes", *wrapped]


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."
