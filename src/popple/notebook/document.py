"""A notebook as the rules see it: cells, and the blocks of text in them, with places.

In: a notebook (nbformat's), or a page of Markdown. Out: a `Document`. Markdown is read
by markdown-it, so that a `#` in a code block is no heading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from popple.notebook.code import ParsedCell, parse_cell
from popple.notebook.markdown import Block, Span, read_blocks


@dataclass(frozen=True)
class Cell:
    """One cell; `number` counts from 1, as people do.

    `first_line` is where it begins in a page of Markdown; notebooks have no lines.
    """

    number: int
    kind: str
    source: str
    tags: frozenset[str] = frozenset()
    outputs: tuple[Any, ...] = ()
    execution_count: int | None = None
    metadata: tuple[str, ...] = ()
    first_line: int = 0


@dataclass(frozen=True)
class Section:
    """A heading of level 2 and what stands under it."""

    heading: Block
    blocks: tuple[Block, ...]

    @property
    def title(self) -> str:
        return self.heading.text

    @property
    def cells(self) -> frozenset[int]:
        return frozenset(block.cell for block in (self.heading, *self.blocks))


@dataclass(frozen=True)
class Document:
    """The cells of one notebook and where it lies."""

    cells: tuple[Cell, ...]
    path: Path | None = None
    metadata: tuple[str, ...] = ()

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks of Markdown in order; a code cell is one block."""
        found: list[Block] = []
        for cell in self.cells:
            if cell.kind == "markdown":
                found += read_blocks(cell.source, cell.number)
            elif cell.kind == "code":
                found.append(Block("code", cell.source, cell.number, 1))
        return tuple(found)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Words, code, links and images of all text, quotes and lists included."""
        return tuple(span for block in self.blocks for span in block.spans)

    @cached_property
    def code(self) -> tuple[ParsedCell, ...]:
        """Code cells as syntax trees."""
        return tuple(parse_cell(c.source, c.number) for c in self.code_cells)

    @property
    def code_cells(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.kind == "code")

    @cached_property
    def headings(self) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.kind == "heading")

    @property
    def title(self) -> Block | None:
        """The first heading of level 1."""
        return next((each for each in self.headings if each.level == 1), None)

    @cached_property
    def introduction(self) -> tuple[Block, ...]:
        """What stands between the title and the first section."""
        start = next((i + 1 for i, b in enumerate(self.blocks) if b is self.title), 0)
        return tuple(_until_section(self.blocks[start:]))

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Headings of level 2 with what stands under each."""
        starts = [i for i, block in enumerate(self.blocks) if _opens_section(block)]
        return tuple(
            Section(self.blocks[i], tuple(_until_section(self.blocks[i + 1 :])))
            for i in starts
        )

    def section(self, title: str) -> Section | None:
        """The section of this title, however its letters are capitalised."""
        wanted = title.lower()
        return next((s for s in self.sections if s.title.lower() == wanted), None)

    def relative(self, name: str) -> Path:
        """A file that the notebook names, from where the notebook lies."""
        return (self.path.parent if self.path else Path()) / name


def _opens_section(block: Block) -> bool:
    return block.kind == "heading" and block.level == 2


def _until_section(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        if _opens_section(block):
            return
        yield block
