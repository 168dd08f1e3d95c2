"""Copyright, title, headings and the order of sections."""

from __future__ import annotations

import re
from collections.abc import Iterator

from popple.notebook.document import Document
from popple.notebook.rule import WRITTEN, Rule, Settings, Spot, automatic, warning

SETUP = "Environment setup"
DEPENDENCIES = "Dependencies and configuration"
CONCLUSIONS = "Conclusions and next steps"

# The convention, and what its own examples add to it: `Training` as a third mode.
TITLE = re.compile(
    r"^(?P<task>\S.*?) on IPUs using (?P<model>\S.*?)"
    r" - (?P<mode>Inference|Fine-tuning|Training)(?P<extra> \S.*)?$"
)
_MODE_AND_REST = re.compile(r" - (?:Inference|Fine-tuning|Training)(?P<rest>.*)$")
_COPYRIGHT = re.compile(r"^\W*Copyright \(c\) (?P<year>\d{4})")


def check_copyright(document: Document, settings: Settings) -> Iterator[Spot]:
    source = document.cells[0].source if document.cells else ""
    if not _COPYRIGHT.match(source):
        yield Spot(1, 1)


def check_year(document: Document, settings: Settings) -> Iterator[Spot]:
    found = _COPYRIGHT.match(document.cells[0].source if document.cells else "")
    year = int(found["year"]) if found else settings.first_year
    if not settings.first_year <= year <= settings.this_year:
        yield Spot(1, 1, f"{year} is not in {settings.first_year}-{settings.this_year}")


def check_first_heading(document: Document, settings: Settings) -> Iterator[Spot]:
    first = next(iter(document.headings), None)
    if first is None or first.level != 1:
        place = (first.cell, first.line) if first else (1, 1)
        yield Spot(*place, "the first heading has another level" if first else "")


def check_title(document: Document, settings: Settings) -> Iterator[Spot]:
    title = document.title
    if title is not None and not TITLE.match(title.text):
        yield Spot(title.cell, title.line, repr(title.text))


def check_extra(document: Document, settings: Settings) -> Iterator[Spot]:
    title = document.title
    found = _MODE_AND_REST.search(title.text) if title else None
    if title and found and found["rest"] and not re.match(r" \w", found["rest"]):
        yield Spot(title.cell, title.line, repr(found["rest"]))


def check_one_title(document: Document, settings: Settings) -> Iterator[Spot]:
    firsts = [each for each in document.headings if each.level == 1]
    for each in firsts[1:]:
        yield Spot(each.cell, each.line, repr(each.text))
    if not firsts:
        yield Spot(1, 1, "there is none")


def check_levels(document: Document, settings: Settings) -> Iterator[Spot]:
    title = document.title
    for each in document.headings:
        if each is not title and each.level < 2:
            yield Spot(each.cell, each.line, repr(each.text))


def check_skips(document: Document, settings: Settings) -> Iterator[Spot]:
    level = 0
    for each in document.headings:
        if each.level > level + 1:
            yield Spot(each.cell, each.line, f"level {level} to {each.level}")
        level = each.level


def check_order(document: Document, settings: Settings) -> Iterator[Spot]:
    titles = [section.title.lower() for section in document.sections]
    wanted = [name.lower() for name in (SETUP, DEPENDENCIES, CONCLUSIONS)]
    for name in (SETUP, DEPENDENCIES, CONCLUSIONS):
        if name.lower() not in titles:
            yield Spot(1, 1, f"there is no section {name!r}")
    found = [title for title in titles if title in wanted]
    if found != [name for name in wanted if name in found]:
        section = document.section(found[0])
        place = section.heading if section else document.blocks[0]
        yield Spot(place.cell, place.line, "they stand in another order")
    if titles and set(titles) <= set(wanted):
        yield Spot(1, 1, "there is no section between configuration and conclusions")


RULES: tuple[Rule, ...] = (
    automatic(
        1,
        "copyright",
        "The first cell is no copyright notice",
        "Begin with a cell 'Copyright (c) YEAR OWNER. All rights reserved.'",
        check_copyright,
    ),
    warning(
        2,
        "copyright",
        "The copyright's year is not a year of this notebook",
        "Give the year in which the notebook was first published.",
        check_year,
    ),
    automatic(
        3,
        "title",
        "The first heading is no title",
        "Make the title the first heading, with one '#'.",
        check_first_heading,
    ),
    automatic(
        4,
        "title",
        "The title does not follow the convention",
        "Write '[Task] on IPUs using [Model] - Inference|Fine-tuning|Training [more]'.",
        check_title,
        WRITTEN,
    ),
    automatic(
        5,
        "title",
        "What follows the title's mode is no addition in words",
        "Put a space and words after the mode: '- Training with PyTorch Geometric'.",
        check_extra,
        WRITTEN,
    ),
    automatic(
        6,
        "headings",
        "There is not exactly one heading of level 1",
        "Keep the title at level 1 and give other headings more '#'.",
        check_one_title,
    ),
    automatic(
        7,
        "headings",
        "A heading below the title has level 1",
        "Use '##' or more.",
        check_levels,
    ),
    automatic(
        8,
        "headings",
        "A heading skips a level",
        "Go down one level at a time.",
        check_skips,
    ),
    automatic(
        9,
        "headings",
        "Required sections are missing or out of order",
        f"Keep the order: {SETUP}; {DEPENDENCIES}; the body; {CONCLUSIONS}.",
        check_order,
    ),
)
