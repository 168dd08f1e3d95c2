"""What stands between the title and the first section: table, text, outcomes, links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from popple.notebook.document import Document
from popple.notebook.markdown import Block, count_sentences
from popple.notebook.rule import WRITTEN, Rule, Settings, Spot, automatic, warning
from popple.notebook.rules.structure import TITLE
from popple.notebook.rules.verbs import VERBS

COLUMNS = (
    "Domain",
    "Tasks",
    "Model",
    "Datasets",
    "Workflow",
    "Number of IPUs",
    "Execution time",
)
_IPUS = re.compile(r"recommended: \d+ \(min: \d+\)")
_TIME = re.compile(
    r"\d+(?:\.\d+)? ?(?:s|sec|seconds?|min|mn|minutes?|h|hours?)\b", re.I
)
_PLACEHOLDER = re.compile(r"\dX|X\d|\bX+\b")

# Details that sell a feature instead of solving the reader's problem.
_DETAILS = (
    "I/O overlap",
    "overlapped I/O",
    "replica",
    "replication",
    "tile",
    "tiles",
    "stash",
    "exchange",
    "infeed",
    "outfeed",
    "device iterations",
    "steps per execution",
)
_SPECIFIC = (
    "PopTorch",
    "PopART",
    "PopXL",
    "Poplar",
    "IPUStrategy",
    "IPUConfig",
    "PopLibs",
    "poprun",
    "PopVision",
    "ipu_compiler",
)


def summary_table(document: Document) -> Block | None:
    """The first table of the introduction."""
    blocks = document.introduction
    return next((block for block in blocks if block.kind == "table"), None)


def outcomes(document: Document) -> Block | None:
    """The first list of the introduction."""
    return next((b for b in document.introduction if b.kind == "list"), None)


def _cell_of(document: Document, column: str) -> tuple[Block, str] | None:
    table = summary_table(document)
    if table is None or len(table.rows) < 2 or column not in table.rows[0]:
        return None
    index = table.rows[0].index(column)
    row = table.rows[1]
    return (table, row[index]) if index < len(row) else (table, "")


def check_table(document: Document, settings: Settings) -> Iterator[Spot]:
    if summary_table(document) is None:
        yield _after_title(document)


def check_columns(document: Document, settings: Settings) -> Iterator[Spot]:
    table = summary_table(document)
    if table is not None and table.rows[0] != COLUMNS:
        yield Spot(table.cell, table.line, ", ".join(table.rows[0]))


def check_ipus(document: Document, settings: Settings) -> Iterator[Spot]:
    found = _cell_of(document, "Number of IPUs")
    if found and not _IPUS.search(found[1]):
        yield Spot(found[0].cell, found[0].line + 2, repr(found[1]))


def check_time(document: Document, settings: Settings) -> Iterator[Spot]:
    found = _cell_of(document, "Execution time")
    if found and (not _TIME.search(found[1]) or _PLACEHOLDER.search(found[1])):
        yield Spot(found[0].cell, found[0].line + 2, repr(found[1]))


def opening(document: Document) -> list[Block]:
    """The paragraphs that introduce: before the outcomes, with more than pictures."""
    found: list[Block] = []
    for block in document.introduction:
        if block.kind == "list":
            break
        is_text = block.kind == "paragraph" and bool(block.words.strip())
        if is_text and not block.text.endswith(":") and not _is_badges(block):
            found.append(block)
    return found


def _is_badges(block: Block) -> bool:
    outside = [s for s in block.spans if s.kind in ("text", "code") and s.text.strip()]
    linked = {link.text for link in block.links if link.image}
    is_picture = any(span.kind == "image" for span in block.spans)
    return is_picture and all(span.text in linked for span in outside)


def check_length(document: Document, settings: Settings) -> Iterator[Spot]:
    paragraphs = opening(document)
    count = sum(count_sentences(block.text) for block in paragraphs)
    if not 3 <= count <= 5:
        spot = _after_title(document)
        place = paragraphs[0] if paragraphs else spot
        yield Spot(place.cell, place.line, f"{count} sentences")


def _mentions(document: Document, words: Iterable[str]) -> Iterator[Spot]:
    pattern = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in words), re.I)
    for block in opening(document):
        for found in pattern.findall(block.text):
            yield Spot(block.cell, block.line, repr(found))


def check_details(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from _mentions(document, _DETAILS)


def check_specific(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from _mentions(document, _SPECIFIC)


def check_outcomes(document: Document, settings: Settings) -> Iterator[Spot]:
    if outcomes(document) is None:
        yield _after_title(document)


def check_verbs(document: Document, settings: Settings) -> Iterator[Spot]:
    block = outcomes(document)
    for item in block.items if block else ():
        words = re.findall(r"[A-Za-z-]+", item)
        if block and (not words or words[0].lower() not in VERBS):
            yield Spot(block.cell, block.line, repr(item[:40]))


def check_links(document: Document, settings: Settings) -> Iterator[Spot]:
    if not any(_resources(document)):
        yield _after_title(document)


def _resources(document: Document) -> Iterator[str]:
    """Links of the introduction that are no badges, and notebooks named by path."""
    for block in document.introduction:
        yield from (link.target for link in block.links if not link.image)
        for span in block.spans:
            if span.kind == "code" and span.text.endswith(".ipynb"):
                yield span.text


def check_counterpart(document: Document, settings: Settings) -> Iterator[Spot]:
    title = document.title
    found = TITLE.match(title.text) if title else None
    if found is None:
        return
    other = "train|fine-tun" if found["mode"] == "Inference" else "inferenc|predict"
    text = " ".join(block.text for block in document.introduction)
    if not re.search(other, text, re.IGNORECASE):
        yield Spot(
            *_after_title(document)[:2], f"nothing about {other.split('|')[0]}..."
        )


def _after_title(document: Document) -> Spot:
    title = document.title
    return Spot(title.cell, title.line) if title else Spot(1, 1)


RULES: tuple[Rule, ...] = (
    automatic(
        10,
        "introduction",
        "There is no summary table before the first section",
        "Add a table with what the notebook does, on how many IPUs, how long.",
        check_table,
    ),
    automatic(
        11,
        "introduction",
        "The summary table has other columns",
        f"Use these columns: {', '.join(COLUMNS)}.",
        check_columns,
    ),
    automatic(
        12,
        "introduction",
        "The number of IPUs is not given as recommended and minimum",
        "Write 'recommended: 16 (min: 4)'.",
        check_ipus,
        WRITTEN,
    ),
    automatic(
        13,
        "introduction",
        "The execution time is not filled in",
        "Write a number and a unit: '5 min'.",
        check_time,
        WRITTEN,
    ),
    automatic(
        15,
        "introduction",
        "The introduction does not have three to five sentences",
        "Say in three to five sentences what problem is solved, and for whom.",
        check_length,
        WRITTEN,
    ),
    warning(
        17,
        "introduction",
        "The introduction mentions a detail",
        "Name big-picture features only; leave the rest to the body.",
        check_details,
    ),
    warning(
        18,
        "introduction",
        "The introduction mentions something specific to IPUs or a framework",
        "Speak about the reader's problem; name products in the body.",
        check_specific,
    ),
    automatic(
        19,
        "introduction",
        "There is no list of learning outcomes",
        "Add a bullet list of what the reader will do.",
        check_outcomes,
    ),
    warning(
        20,
        "introduction",
        "An outcome does not begin with a verb",
        "Begin with what the reader does: 'train ...', 'compare ...'.",
        check_verbs,
    ),
    automatic(
        22,
        "introduction",
        "The introduction leads to no other resource",
        "Link related documentation or notebooks before the first section.",
        check_links,
    ),
    warning(
        23,
        "introduction",
        "The introduction does not lead to the counterpart",
        "From inference point to fine-tuning or training, and the other way round.",
        check_counterpart,
    ),
)
