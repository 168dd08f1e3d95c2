"""The main part: headings, parameters, cells, and what readers can do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from popple.notebook.code import calls, imports, parse_cell
from popple.notebook.document import Document
from popple.notebook.rule import Rule, Settings, Spot, warning
from popple.notebook.rules.introduction import outcomes
from popple.notebook.rules.structure import CONCLUSIONS, DEPENDENCIES, SETUP

# Words that say nothing about whether a heading and an outcome are the same thing.
_SHORT_WORDS = """
    a an and as at by for how in into is it its of on or the to up what with you your
"""
_FILLERS = frozenset(_SHORT_WORDS.split())
_LONG_TEXT_WORDS = 250
_LONG_CODE_LINES = 40
_OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>")
_SAVES = {
    "save",
    "save_checkpoint",
    "save_pretrained",
    "save_weights",
    "ModelCheckpoint",
}
_EVALUATES = {"evaluate", "accuracy_score", "score", "classification_report"}
_API = {"change_checkpoint", "change_dataset"}


def check_headings(document: Document, settings: Settings) -> Iterator[Spot]:
    known = {name.lower() for name in (SETUP, DEPENDENCIES, CONCLUSIONS)}
    titles = [h.text for h in document.headings if h.level in (2, 3)]
    bodies = [_stems(text) for text in titles if text.lower() not in known]
    block = outcomes(document)
    for item in block.items if block else ():
        if block and max((_overlap(_stems(item), b) for b in bodies), default=0) < 0.5:
            yield Spot(block.cell, block.line, repr(item[:50]))


def _stems(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return frozenset(word[:5] for word in words if word not in _FILLERS)


def _overlap(outcome: frozenset[str], heading: frozenset[str]) -> float:
    """How much of the shorter text the other one has."""
    smaller = min(len(outcome), len(heading))
    return len(outcome & heading) / smaller if smaller else 0.0


def check_long_text(document: Document, settings: Settings) -> Iterator[Spot]:
    for cell in document.cells:
        count = len(cell.source.split())
        if cell.kind == "markdown" and count > _LONG_TEXT_WORDS:
            yield Spot(cell.number, 1, f"{count} words")


def check_parameters(document: Document, settings: Settings) -> Iterator[Spot]:
    tagged = [cell for cell in document.code_cells if "parameters" in cell.tags]
    if not tagged:
        yield Spot(1, 1, "no cell is tagged 'parameters'")
    for cell in tagged:
        lines = cell.source.splitlines()
        for node in parse_cell(cell.source, cell.number).tree.body:
            own = lines[node.lineno - 1 : node.end_lineno]
            above = lines[node.lineno - 2] if node.lineno > 1 else ""
            is_told = any("#" in line for line in own) or above.startswith("#")
            if isinstance(node, ast.Assign | ast.AnnAssign) and not is_told:
                yield Spot(cell.number, node.lineno, own[0].strip())


def check_long_code(document: Document, settings: Settings) -> Iterator[Spot]:
    for cell in document.code_cells:
        count = len([line for line in cell.source.splitlines() if line.strip()])
        if count > _LONG_CODE_LINES:
            yield Spot(cell.number, 1, f"{count} lines")


def check_reprs(document: Document, settings: Settings) -> Iterator[Spot]:
    for cell in document.code_cells:
        for output in cell.outputs:
            for found in _OBJECT.findall(str(output)):
                yield Spot(cell.number, 1, found)


def check_api(document: Document, settings: Settings) -> Iterator[Spot]:
    modules = {name.split(".")[0] for name, _, _ in imports(document.code)}
    methods = {call.method for call in calls(document.code)}
    defined = {
        node.name
        for parsed in document.code
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.FunctionDef)
    }
    if "api" not in modules and not _API & (methods | defined):
        yield Spot(1, 1)


def _unless_called(document: Document, names: set[str]) -> Iterator[Spot]:
    if not any(call.method in names for call in calls(document.code)):
        yield Spot(1, 1)


def check_saves(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from _unless_called(document, _SAVES)


def check_evaluates(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from _unless_called(document, _EVALUATES)


RULES: tuple[Rule, ...] = (
    warning(
        53,
        "body",
        "No heading of the body matches an outcome",
        "Name the section after the outcome, best in the same words.",
        check_headings,
    ),
    warning(
        54,
        "body",
        "A cell of text is long",
        "Split it: several cells are easier to review, and look the same.",
        check_long_text,
    ),
    warning(
        63,
        "body",
        "A parameter that readers tune is not described",
        "Tag the cell 'parameters' and comment each line of it.",
        check_parameters,
    ),
    warning(
        65,
        "body",
        "A cell of code is long",
        "Move what readers need not see into a module beside the notebook.",
        check_long_code,
    ),
    warning(
        67,
        "body",
        "An output shows the address of an object",
        "Give its class a __repr__ that says something.",
        check_reprs,
    ),
    warning(
        68,
        "body",
        "The application interface is not used",
        "Implement popple.notebook.Application, best in a module api.py.",
        check_api,
    ),
    warning(
        71,
        "body",
        "Nothing is saved",
        "Show how to save a checkpoint.",
        check_saves,
    ),
    warning(
        72,
        "body",
        "Nothing is evaluated",
        "Show how good the model is, on data it has not seen.",
        check_evaluates,
    ),
)
