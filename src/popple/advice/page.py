"""Advice as text for the terminal: verdict, memory by role, remedies."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from popple.advice.advice import Advice, Outcome, Remedy
from popple.record import ROLES
from popple.text_table import LEFT, Column, align_rows
from popple.units import render_bytes, render_count, render_percent

_WIDTH = 100
_INDENT = "  "
_SIZE = Column(True, 10)
_MAX_CHIPS = 8


def render_advice(advice: Advice) -> str:
    """A page of aligned plain text."""
    blocks = [
        [render_verdict(advice.title, advice.outcome)],
        list(_role_lines(advice)),
        list(_remedy_lines(advice)),
        list(_how_lines(advice)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def render_verdict(title: str, outcome: Outcome) -> str:
    """One line: does it fit, and how full the fullest tile is."""
    capacity = outcome.tile_memory_bytes
    peak = render_bytes(outcome.peak_tile_bytes)
    share = render_percent(outcome.peak_tile_bytes / capacity)
    word = "fits" if outcome.fits else "does not fit"
    on = f"{outcome.num_chips} IPU" + ("s" if outcome.num_chips > 1 else "")
    rate = f"{render_count(outcome.samples_per_second)} samples/s"
    return (
        f"{title} {word} on {on}: {peak} of {render_bytes(capacity)} on the fullest "
        f"tile ({share}), {rate}"
    )


def _role_lines(advice: Advice) -> Iterator[str]:
    if not advice.memory:
        return
    fullest = sorted(advice.memory, key=lambda each: -each.tile_bytes)[:_MAX_CHIPS]
    shown = sorted(fullest, key=lambda each: each.chip)
    yield "Memory by role, on the fullest tile of each IPU"
    rows = [["", *(f"IPU {each.chip}" for each in shown)]]
    for role in ROLES:
        sizes = [each.bytes_by_role.get(role, 0) for each in shown]
        if any(sizes):
            rows.append([role, *map(render_bytes, sizes)])
    rows.append(["together", *(render_bytes(each.tile_bytes) for each in shown)])
    yield from align_rows(rows, (LEFT, *(_SIZE for _ in shown)), _INDENT)


def _remedy_lines(advice: Advice) -> Iterator[str]:
    if not advice.remedies:
        return
    yield "What would change it, each modelled; best first"
    rows = [("", "fits", "fullest tile", "cycles", "samples/s", "IPUs")]
    rows += [
        (f"{number}", *_figures(advice.outcome, remedy.outcome))
        for number, remedy in enumerate(advice.remedies, start=1)
    ]
    columns = (LEFT, LEFT, Column(True, 22), Column(True, 26), _SIZE, Column(True, 5))
    lines = list(align_rows(rows, columns, _INDENT))
    yield lines[0]
    for line, remedy in zip(lines[1:], advice.remedies, strict=True):
        yield line
        yield from _wrapped(remedy.name)


def _figures(before: Outcome, after: Outcome) -> tuple[str, ...]:
    saved = after.peak_tile_bytes - before.peak_tile_bytes
    more = after.cycles - before.cycles
    return (
        "yes" if after.fits else "no",
        f"{render_bytes(after.peak_tile_bytes)} ({_signed_bytes(saved)})",
        f"{render_count(after.cycles)} ({more / before.cycles:+.1%})",
        render_count(after.samples_per_second),
        str(after.num_chips),
    )


def _signed_bytes(num_bytes: int) -> str:
    return f"{'-' if num_bytes < 0 else '+'}{render_bytes(abs(num_bytes))}"


def _how_lines(advice: Advice) -> Iterator[str]:
    if (first := advice.first) is None:
        return
    yield _promise(first)
    for text in first.how:
        yield from _wrapped(text)


def _promise(remedy: Remedy) -> str:
    if remedy.outcome.fits:
        return "To make it fit, the first of these in the program:"
    return "Nothing tried makes it fit; the nearest to it, in the program:"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
