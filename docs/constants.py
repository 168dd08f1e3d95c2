"""Tables of the numbers the cost model is made of, read off the target files and code.

In: the built-in chips and systems, and constants of modules with the words beside
them. Out: tables in Markdown, for `docs/cost_model.md`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

from popple.target import Constant, describe, list_chips, list_systems
from popple.text_table import render_markdown_table
from popple.tools.targets import render_value

SRC = Path(__file__).parents[1] / "src"
# Modules whose numbers stand for something of the machine; others bound a search.
MECHANISMS = (
    "popple/plan/blocks/ctc.py",
    "popple/plan/blocks/reduction.py",
    "popple/plan/blocks/tile_reduction.py",
    "popple/plan/builder.py",
    "popple/plan/codelets",
    "popple/plan/conv/cost.py",
    "popple/plan/mapping.py",
    "popple/plan/rules/generic.py",
    "popple/plan/rules/recurrent.py",
    "popple/plan/rules/solve.py",
    "popple/sim/elements.py",
    "popple/sim/footprint.py",
    "popple/sim/phases.py",
    "popple/sim/reuse.py",
)


def render_chips() -> str:
    """Every constant of every chip; equal values of equal source share a row."""
    return _render_shared(
        (chip.name, row)
        for chip in list_chips()
        for row in describe(chip.name)
        if row.part.startswith("chip")
    )


def render_systems() -> str:
    """Every constant of every system, rows shared in the same way."""
    return _render_shared(
        (system.name, row)
        for system in list_systems()
        for row in describe(system.name)
        if row.part.startswith("system")
    )


def _render_shared(rows: Iterable[tuple[str, Constant]]) -> str:
    owners: dict[tuple[str, str, str, str], list[str]] = {}
    for owner, row in rows:
        key = (f"`{row.name}`", render_value(row.value), row.unit, row.source)
        owners.setdefault(key, []).append(owner)
    order = list(dict.fromkeys(name for name, *_ in owners))
    ranked = sorted(owners.items(), key=lambda item: order.index(item[0][0]))
    return render_markdown_table(
        ("constant", "value", "unit", "of", "source"),
        ((*key[:3], ", ".join(names), key[3]) for key, names in ranked),
    )


def render_mechanisms() -> str:
    """Numbers in the modules that plan and simulate, where words stand beside them."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for path in _modules():
        for name, value, words in _explained(path.read_text(encoding="utf-8")):
            key = (f"`{path.relative_to(SRC).as_posix()}`", words)
            numbers.setdefault(key, []).append(f"`{name}` {render_value(value)}")
    rows = ((", ".join(these), *key) for key, these in numbers.items())
    return render_markdown_table(("constants", "in", "what they stand for"), rows)


def _modules() -> Iterator[Path]:
    for name in MECHANISMS:
        path = SRC / name
        yield from sorted(path.glob("*.py")) if path.is_dir() else [path]


def _explained(text: str) -> Iterator[tuple[str, float, str]]:
    """Numbers of a module with the string below them or the comment above."""
    lines, body = text.splitlines(), ast.parse(text).body
    for node, below in zip(body, [*body[1:], None], strict=True):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
            continue
        name, value = node.targets[0], node.value.value
        if not (isinstance(name, ast.Name) and isinstance(value, int | float)):
            continue
        if words := _string(below) or _comment_above(lines, node.lineno - 1):
            yield name.id.lstrip("_"), value, " ".join(words.split())


def _string(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return ""


def _comment_above(lines: list[str], index: int) -> str:
    """The comment that heads the lines without a blank before `index`."""
    start = index
    while start and lines[start - 1].strip():
        start -= 1
    heading = takewhile(lambda line: line.startswith("#"), lines[start:index])
    return "".join(line.removeprefix("#") for line in heading)
