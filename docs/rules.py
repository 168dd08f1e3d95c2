"""The table of the rules for notebooks."""

from __future__ import annotations

from popple.notebook.rulebook import ALL
from popple.text_table import render_markdown_table


def render_rules() -> str:
    """Every rule: what breaks it, and what to do."""
    rows = [
        (f"`{r.id}`", r.part, r.kind.value, _escape(r.message), _escape(r.remedy))
        for r in ALL
    ]
    header = ("rule", "part", "checked", "what it says", "what to do")
    return render_markdown_table(header, rows)


def _escape(text: str) -> str:
    """What Markdown would take for links, pictures or emphasis."""
    for letter in "[]<>*":
        text = text.replace(letter, f"\\{letter}")
    return text
