"""Words and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from popple.notebook.document import Document
from popple.notebook.markdown import Block, Span
from popple.notebook.rule import WRITTEN, Rule, Settings, Spot, automatic
from popple.notebook.rules.structure import TITLE

_LATINISMS = re.compile(
    # "VS" is an editor's name, so capitals count.
    r"(?<![\w/.-])(?:[eE]\.g\.?|[iI]\.e\.?|[eE]tc\b\.?|et al\.?|[vV]iz\.?|[cC]f\.|"
    r"[vV]s\b\.?|[vV]ia)(?![\w/-])"
)
_TRADEMARKS = {
    name.lower(): name
    for name in (
        "TensorFlow",
        "PyTorch",
        "PopTorch",
        "PopART",
        "PopLibs",
        "PopVision",
        "Graphcore",
        "GitHub",
        "JupyterLab",
    )
}
_TRADEMARK = re.compile(
    rf"(?<![\w/.@-])(?:{'|'.join(_TRADEMARKS)})(?![\w/@-]|\.\w)", re.IGNORECASE
)
_NUMBERS = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
}
_ANNOUNCED = re.compile(rf"\b({'|'.join(_NUMBERS)}) (?:\w+ )?\w+:$", re.IGNORECASE)
_REVERSED_LINK = re.compile(r"\(([^()\s][^()]*)\)\[((?:https?:|\.{0,2}/|#)[^\]]*)\]")
_TIMEOUT_SECONDS = 10


def _words(document: Document) -> Iterator[Span]:
    return (span for span in document.spans if span.kind == "text")


def check_links(document: Document, settings: Settings) -> Iterator[Spot]:
    for span in document.spans:
        if span.kind in ("link", "image") and _is_dead(document, span, settings):
            yield Spot(span.cell, span.line, span.target)


def _is_dead(document: Document, span: Span, settings: Settings) -> bool:
    parts = urlsplit(span.target)
    if parts.scheme in ("http", "https"):
        return settings.online and not _answers(span.target)
    if parts.scheme or not parts.path:
        return False
    return not document.relative(unquote(parts.path)).exists()


def _answers(address: str) -> bool:
    request = Request(address, headers={"User-Agent": "popple-notebook"})
    try:
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            return answer.status < 400
    except (URLError, OSError, ValueError):
        return False


def check_latinisms(document: Document, settings: Settings) -> Iterator[Spot]:
    for span in _words(document):
        for found in _LATINISMS.findall(span.text):
            yield Spot(span.cell, span.line, repr(found))


def check_trademarks(document: Document, settings: Settings) -> Iterator[Spot]:
    for span in _words(document):
        for found in _TRADEMARK.findall(span.text):
            right = _TRADEMARKS[found.lower()]
            if found != right:
                yield Spot(span.cell, span.line, f"{found!r}, not {right!r}")


def check_counts(document: Document, settings: Settings) -> Iterator[Spot]:
    for block, following in zip(document.blocks, document.blocks[1:], strict=False):
        wanted = _announced(block)
        if wanted and following.kind == "list" and len(following.items) != wanted:
            count = len(following.items)
            yield Spot(block.cell, block.line, f"{wanted} announced, {count} listed")


def _announced(block: Block) -> int:
    found = _ANNOUNCED.search(block.text) if block.kind == "paragraph" else None
    return _NUMBERS[found[1].lower()] if found else 0


def check_reversed_links(document: Document, settings: Settings) -> Iterator[Spot]:
    for block in document.blocks:
        if block.kind in ("paragraph", "list", "quote"):
            for found in _REVERSED_LINK.finditer(block.text):
                line = block.line + block.text.count("\n", 0, found.start())
                yield Spot(block.cell, line, found[0][:60])


def check_linked_titles(document: Document, settings: Settings) -> Iterator[Spot]:
    for span in document.spans:
        if span.kind == "link" and urlsplit(span.target).path.endswith(".ipynb"):
            # File names, and words such as "notebook template", are no titles.
            is_title = (
                " on " in span.text or " with " in span.text or " - " in span.text
            )
            if is_title and not span.image and not TITLE.match(span.text):
                yield Spot(span.cell, span.line, repr(span.text))


RULES: tuple[Rule, ...] = (
    automatic(
        60,
        "links",
        "A link or picture leads nowhere",
        "Correct it. Addresses are tried with --online only.",
        check_links,
        WRITTEN,
    ),
    automatic(
        61,
        "wording",
        "A latinism",
        "Write 'for example', 'that is', 'and so on', 'through', 'compared with'.",
        check_latinisms,
    ),
    automatic(
        62,
        "wording",
        "A trademark is not spelt as its owner spells it",
        "Correct it, or write it as `code` if it is the name of a package.",
        check_trademarks,
    ),
    automatic(
        89,
        "wording",
        "A list has another number of items than announced",
        "Count again.",
        check_counts,
    ),
    automatic(
        91,
        "links",
        "A link has its brackets the wrong way round",
        "Write [text](address).",
        check_reversed_links,
    ),
    automatic(
        92,
        "title",
        "A linked notebook's title does not follow the convention",
        "Write '[Task] on IPUs using [Model] - Inference|Fine-tuning|Training [more]'.",
        check_linked_titles,
    ),
)
