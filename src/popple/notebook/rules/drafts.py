"""What a draft may have and a published notebook may not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from popple.notebook.code import imports
from popple.notebook.document import Document
from popple.notebook.rule import RELEASED, WRITTEN, Rule, Settings, Spot, automatic

_OPEN_END = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
_TAGS = """
    a abbr b blockquote br center code dd del details div dl dt em figcaption figure
    font h1 h2 h3 h4 h5 h6 hr i iframe img input ins kbd li mark ol p pre q s small
    source span strong sub summary sup svg table tbody td th thead tr tt u ul var
    video
"""
_HTML = frozenset(_TAGS.split())
_ANGLES = re.compile(r"<(/?[A-Za-z][^<>\n]{0,60})>")
_BRACES = re.compile(r"\{[A-Za-z][^{}\n$\\]*\}")
_ENCODED = re.compile(r"%3C[^%\s)]+%3E", re.I)
# In lines for a shell `<` redirects: only words with dots or in brackets count.
_SHELL = re.compile(r"<[A-Za-z][\w -]*(?:\.\.\.>?|>)")


def _autoreloads(document: Document) -> Iterator[tuple[int, int]]:
    for parsed in document.code:
        for magic in parsed.magics:
            if "autoreload" in magic.text:
                yield magic.cell, magic.line


def check_autoreload_first(document: Document, settings: Settings) -> Iterator[Spot]:
    first = min(((c, n) for _, c, n in imports(document.code)), default=None)
    for place in _autoreloads(document):
        if first is not None and place > first:
            yield Spot(*place)


def check_autoreload_gone(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from (Spot(*place) for place in _autoreloads(document))


def check_open_ends(document: Document, settings: Settings) -> Iterator[Spot]:
    for cell in document.cells:
        for number, line in enumerate(cell.source.splitlines(), start=1):
            if _OPEN_END.search(line):
                yield Spot(cell.number, number, line.strip()[:60])


def check_quotes(document: Document, settings: Settings) -> Iterator[Spot]:
    instruction = re.compile(r">\s*(?:#+ |Refer to |Example code|This section should)")
    for block in document.blocks:
        if block.kind == "quote" and instruction.match(block.text):
            yield Spot(block.cell, block.line, block.text.splitlines()[0][:60])


def check_placeholders(document: Document, settings: Settings) -> Iterator[Spot]:
    for span in document.spans:
        for found in _placeholders_in(span.kind, span.text, span.target):
            yield Spot(span.cell, span.line, found)
    for block in document.blocks:
        if block.kind == "html" and not block.text.startswith("<!--"):
            for found in _open_angles(block.text):
                yield Spot(block.cell, block.line, found)
    for parsed in document.code:
        for magic in parsed.magics:
            for found in _SHELL.findall(magic.text):
                yield Spot(magic.cell, magic.line, found)


def _placeholders_in(kind: str, text: str, target: str) -> list[str]:
    if kind in ("link", "image"):
        return _ENCODED.findall(target)
    if kind == "code":
        return []
    return [*_open_angles(text), *_BRACES.findall(text)]


def _open_angles(text: str) -> list[str]:
    """`<name>` that is neither HTML nor an address."""
    found: list[str] = []
    for inner in _ANGLES.findall(text):
        tag = re.split(r"[\s/]", inner.strip("/"))[0].lower()
        if tag not in _HTML and "://" not in inner and "@" not in inner:
            found.append(f"<{inner}>")
    return found


RULES: tuple[Rule, ...] = (
    automatic(
        32,
        "drafts",
        "Autoreload comes after an import",
        "Load it in the first code cell: modules imported before are not reloaded.",
        check_autoreload_first,
    ),
    automatic(
        33,
        "drafts",
        "Autoreload is left in a published notebook",
        "Remove the cell when development ends.",
        check_autoreload_gone,
        RELEASED,
    ),
    automatic(
        34,
        "drafts",
        "A note to yourself is left",
        "Do what it says, or remove it.",
        check_open_ends,
        RELEASED,
    ),
    automatic(
        35,
        "drafts",
        "An instruction of the template is left",
        "Follow it and remove the quoted block.",
        check_quotes,
        WRITTEN,
    ),
    automatic(
        36,
        "drafts",
        "A placeholder is left",
        "Replace it by what it stands for; names of variables belong in `code`.",
        check_placeholders,
        WRITTEN,
    ),
)
