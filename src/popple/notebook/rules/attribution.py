"""Pictures and texts of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from popple.notebook.document import Document
from popple.notebook.markdown import Block
from popple.notebook.rule import Rule, Settings, Spot, warning

_LICENCE = re.compile(
    r"licen[cs]e|CC[ -](?:BY|0)|public domain|\bMIT\b|Apache|\bBSD\b", re.IGNORECASE
)
_CHANGES = re.compile(r"\b(?:no )?chang|modif|cropped|resized|adapted|unchanged", re.I)


def _foreign_pictures(document: Document) -> Iterator[tuple[Block, str]]:
    """Pictures of other hosts; badges are links, and no content."""
    for block in document.blocks:
        badges = {link.image for link in block.links}
        for span in block.spans:
            is_remote = span.kind == "image" and bool(urlsplit(span.target).scheme)
            if is_remote and span.target not in badges:
                yield block, span.target


def _near(document: Document, block: Block) -> str:
    """The text around a block, where an attribution would stand."""
    texts = [each for each in document.blocks if each.kind != "code"]
    index = texts.index(block)
    return "\n".join(each.text for each in texts[max(0, index - 1) : index + 3])


def check_licence(document: Document, settings: Settings) -> Iterator[Spot]:
    for block, target in _foreign_pictures(document):
        if not _LICENCE.search(_near(document, block)):
            yield Spot(block.cell, block.line, target)


def check_changes(document: Document, settings: Settings) -> Iterator[Spot]:
    for block in document.blocks:
        is_attribution = (
            "licensed under" in block.text or "available under" in block.text
        )
        if is_attribution and not _CHANGES.search(_near(document, block)):
            yield Spot(block.cell, block.line)


RULES: tuple[Rule, ...] = (
    warning(
        80,
        "attribution",
        "A picture of another host has no attribution",
        "Name its author and licence beside it.",
        check_licence,
    ),
    warning(
        81,
        "attribution",
        "An attribution does not say what was changed",
        "Add 'No changes were made.', or what you changed.",
        check_changes,
    ),
)
