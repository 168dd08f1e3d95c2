"""Markdown as blocks and spans, each with the line it stands in.

In: the text of a cell. Out: headings, paragraphs, lists, tables and quotes in order,
and in them words, code, links and images.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_KINDS = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "blockquote_open": "quote",
    "fence": "fence",
    "code_block": "fence",
    "html_block": "html",
    "hr": "rule",
}

# TeX as Jupyter shows it, and code, in which a dollar is a dollar.
_CODE_OR_FORMULA = re.compile(
    r"(?P<code>(`+)(?:.|\n)*?\2(?!`))|"
    r"\$\$(?:.|\n)+?\$\$|"
    r"(?<!\\)\$(?=\S)[^$\n]*?(?<=\S)\$(?!\d)|"
    r"\\begin\{(?P<name>\w+\*?)\}(?:.|\n)+?\\end\{(?P=name)\}"
)
_BLOT = "\N{MIDDLE DOT}"


@dataclass(frozen=True)
class Span:
    """A piece of text: `text`, `code`, `html`, `link` or `image`.

    `target` is where a link or image leads; `image` is the picture that a link shows.
    """

    kind: str
    text: str
    cell: int
    line: int
    target: str = ""
    image: str = ""


@dataclass(frozen=True)
class Block:
    """A block of a cell; `items` are those of a list, `rows` those of a table."""

    kind: str
    text: str
    cell: int
    line: int
    level: int = 0
    items: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    spans: tuple[Span, ...] = field(default=(), repr=False)

    @property
    def words(self) -> str:
        """Its text without code, links' targets and images."""
        return " ".join(span.text for span in self.spans if span.kind == "text")

    @property
    def links(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.kind == "link")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def read_blocks(source: str, cell: int) -> list[Block]:
    """The outermost blocks of a text."""
    text = _without_formulas(source)
    tokens = _parser().parse(text)
    blocks: list[Block] = []
    start = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            group = tokens[start : index + 1]
            blocks += _make_block(group, text, cell)
            start = index + 1
    return blocks


def _without_formulas(text: str) -> str:
    """The text with formulas blotted out, each letter and line in its place."""
    return _CODE_OR_FORMULA.sub(_blot, text)


def _blot(found: re.Match[str]) -> str:
    return found[0] if found["code"] else re.sub(r"\S", _BLOT, found[0])


def _make_block(group: list[Token], text: str, cell: int) -> list[Block]:
    first = group[0]
    kind = _KINDS.get(first.type)
    if kind is None or first.map is None:
        return []
    lines = text.splitlines()[first.map[0] : first.map[1]]
    block = Block(kind, "\n".join(lines).strip(), cell, first.map[0] + 1)
    inline = [token for token in group if token.type == "inline"]
    block = replace(block, spans=tuple(_read_spans(inline, cell)))
    if kind == "heading":
        title = inline[0].content if inline else ""
        return [replace(block, text=title, level=int(first.tag[1]))]
    if kind == "list":
        return [replace(block, items=tuple(_list_items(group)))]
    if kind == "table":
        return [replace(block, rows=tuple(_table_rows(group)))]
    return [block]


def _list_items(group: list[Token]) -> Iterator[str]:
    """Text of the outer items; inner lists belong to their item."""
    words: list[str] = []
    for token in group:
        if token.type == "inline":
            words.append(token.content)
        if token.type == "list_item_close" and token.level == 1:
            yield " ".join(words)
            words = []


def _table_rows(group: list[Token]) -> Iterator[tuple[str, ...]]:
    row: list[str] = []
    for token in group:
        if token.type == "inline":
            row.append(token.content.strip())
        if token.type == "tr_close":
            yield tuple(row)
            row = []


def _read_spans(inline: list[Token], cell: int) -> Iterator[Span]:
    for token in inline:
        line = token.map[0] + 1 if token.map else 1
        yield from _spans_of(token.children or [], cell, line)


def _spans_of(children: list[Token], cell: int, line: int) -> Iterator[Span]:
    link: Span | None = None
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            line += 1
            link = replace(link, text=f"{link.text} ") if link else None
        elif child.type == "link_open":
            link = Span("link", "", cell, line, str(child.attrs.get("href", "")))
        elif child.type == "link_close" and link is not None:
            yield link
            link = None
        else:
            span = _leaf_of(child, cell, line)
            link = _add_to_link(link, span)
            yield from [span] if span else []


def _leaf_of(child: Token, cell: int, line: int) -> Span | None:
    if child.type == "image":
        return Span("image", child.content, cell, line, str(child.attrs.get("src", "")))
    kinds = {"text": "text", "code_inline": "code", "html_inline": "html"}
    kind = kinds.get(child.type)
    return Span(kind, child.content, cell, line) if kind else None


def _add_to_link(link: Span | None, span: Span | None) -> Span | None:
    if link is None or span is None:
        return link
    picture = span.target if span.kind == "image" else link.image
    return replace(link, text=link.text + span.text, image=picture)


# An end of a sentence: a full stop, question or exclamation mark before a space and a
# capital, or at the very end. Points in numbers and file names have no space behind.
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s+[\"'(\[`*]*[A-Z0-9]|\s*$)")


def count_sentences(text: str) -> int:
    """How many sentences there are; code and links count as words."""
    text = re.sub(r"`[^`]*`", "Code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).strip()
    ends = list(_SENTENCE_END.finditer(text))
    rest = text[ends[-1].end() :] if ends else text
    return len(ends) + bool(rest.strip())
