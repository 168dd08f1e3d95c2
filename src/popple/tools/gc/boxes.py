"""Tables with rules and bars, cells in the middle of fixed columns."""

from __future__ import annotations

from collections.abc import Sequence


def draw_rule(widths: Sequence[int]) -> str:
    """`+------+----+`."""
    return "+" + "+".join("-" * width for width in widths) + "+"


def draw_box(cells: Sequence[str], widths: Sequence[int]) -> str:
    """`| text |  x |`: an odd blank goes to the right, a long text is cut."""
    centred = (_centre(cell, width) for cell, width in zip(cells, widths, strict=True))
    return "|" + "|".join(centred) + "|"


def _centre(text: str, width: int) -> str:
    # `str.center` puts the odd blank of odd widths to the left.
    shown = text[:width]
    left = (width - len(shown)) // 2
    return (" " * left + shown).ljust(width)
