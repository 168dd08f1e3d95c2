"""The last section: what was done, and where to go from here."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from popple.notebook.document import Document, Section
from popple.notebook.markdown import Block, count_sentences
from popple.notebook.rule import WRITTEN, Rule, Settings, Spot, automatic, warning
from popple.notebook.rules.structure import CONCLUSIONS


def _spot(section: Section, detail: str = "") -> Spot:
    return Spot(section.heading.cell, section.heading.line, detail)


def check_last(document: Document, settings: Settings) -> Iterator[Spot]:
    last = document.sections[-1] if document.sections else None
    if last is None or last.title.lower() != CONCLUSIONS.lower():
        yield _spot(last, repr(last.title)) if last else Spot(1, 1)


def _summary(section: Section) -> list[Block]:
    """The paragraphs before the first list, but for the one that announces it."""
    found: list[Block] = []
    for block in section.blocks:
        if block.kind == "list":
            break
        if block.kind == "paragraph" and not block.text.endswith(":"):
            found.append(block)
    return found


def check_length(document: Document, settings: Settings) -> Iterator[Spot]:
    section = document.section(CONCLUSIONS)
    if section is None:
        return
    count = sum(count_sentences(block.text) for block in _summary(section))
    if not 3 <= count <= 6:
        yield _spot(section, f"{count} sentences")


def check_features(document: Document, settings: Settings) -> Iterator[Spot]:
    section = document.section(CONCLUSIONS)
    if section is None:
        return
    kinds = {span.kind for block in _summary(section) for span in block.spans}
    if "code" not in kinds:
        yield _spot(section)


def check_suggestions(document: Document, settings: Settings) -> Iterator[Spot]:
    section = document.section(CONCLUSIONS)
    if section is None:
        return
    items = sum(len(block.items) for block in section.blocks)
    links = sum(len(block.links) for block in section.blocks)
    count = items or links
    if not 2 <= count <= 4:
        yield _spot(section, f"{count} suggestions")


def check_notebook_links(document: Document, settings: Settings) -> Iterator[Spot]:
    for span in document.spans:
        parts = urlsplit(span.target)
        is_relative = not parts.scheme and parts.path.endswith(".ipynb")
        if span.kind == "link" and is_relative:
            yield Spot(span.cell, span.line, span.target)


RULES: tuple[Rule, ...] = (
    automatic(
        55,
        "conclusions",
        f"The last section is not {CONCLUSIONS!r}",
        "End with it.",
        check_last,
    ),
    automatic(
        56,
        "conclusions",
        "The conclusions do not have three to six sentences",
        "Sum up in three to six sentences what the reader did.",
        check_length,
        WRITTEN,
    ),
    warning(
        57,
        "conclusions",
        "The conclusions name no feature, class or method",
        "Say in `code` what was used for each outcome.",
        check_features,
    ),
    automatic(
        58,
        "conclusions",
        "There are not two to four suggestions for next steps",
        "List two to four: notebooks, documentation, code.",
        check_suggestions,
        WRITTEN,
    ),
    automatic(
        59,
        "conclusions",
        "A notebook of the same repository is linked",
        "Name it by path, `folder/notebook.ipynb`: platforms download such links.",
        check_notebook_links,
    ),
)
