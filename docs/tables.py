"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def render_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A header, a rule and the rows; cells may hold anything but line breaks."""
    lines = [header, tuple("---" for _ in header)]
    lines += [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
