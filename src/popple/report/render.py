"""The text `popple report DIR` prints."""

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
from popple.units import render_bytes, render_count, render_percent

_WIDTH = 100
_NAME_WIDTH = 44
_KIND_WIDTH = 16
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
    pairs = list(rows)
    width = max(len(label) for label, _ in pairs)
    return [_cut(f"  {label:<{width}}  {text}") for label, text in pairs]


def _category_lines(report: Report) -> list[str]:
    sums = {name: int(part.sum()) for name, part in bytes_by_category(report).items()}
    if not sums:
        return []
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    shown, rest = ordered[:_NUM_CATEGORIES], ordered[_NUM_CATEGORIES:]
    if rest:
        shown.append((f"{len(rest)} others", sum(size for _, size in rest)))
    everything = sum(sums.values())
    width = max(len(name) for name, _ in shown)
    return ["Memory by category"] + [
        f"  {name:<{width}}  {render_bytes(size):>10}  "
        f"{render_percent(size / everything):>7}"
        for name, size in shown
    ]


def _operation_lines(report: Report, costliest: Sequence[Operation]) -> list[str]:
    if not costliest:
        return []
    heading = _operation_line("operation", "kind", "cycles", "of run", "bound by")
    return ["Costliest operations", heading] + [
        _operation_line(
            each.name,
            each.kind,
            render_count(each.cycles),
            render_percent(share_of_run(report, each)),
            each.bound_by,
        )
        for each in costliest
    ]


def _operation_line(name: str, kind: str, cycles: str, share: str, bound: str) -> str:
    name, kind = _shorten(name, _NAME_WIDTH), _shorten(kind, _KIND_WIDTH)
    line = (
        f"  {name:<{_NAME_WIDTH}}  {kind:<{_KIND_WIDTH}}  {cycles:>13}  {share:>7}"
        f"  {bound}"
    )
    return _cut(line).rstrip()


def _note_lines(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    wrapped = [
        textwrap.fill(note, _WIDTH, initial_indent="  ", subsequent_indent="    ")
        for note in notes
    ]
    return ["Notes", *wrapped]


def _shorten(text: str, width: int) -> str:
    """Names differ at their ends, so the beginning is what goes."""
    return text if len(text) <= width else "..." + text[3 - width :]


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."
