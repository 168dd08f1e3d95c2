"""What a rule is, what it finds, and what the rules are told.

A rule is data: its number in the guidelines' table, its part, how it is checked, what
it says and what to do. Its check yields spots; everything else is the linter's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from popple.notebook.document import Document


class Kind(Enum):
    """How a rule is checked: surely, by a heuristic that warns, or by people."""

    AUTOMATIC = "automatic"
    WARNING = "warning"
    HUMAN = "human"


class Mode(Enum):
    """How far a notebook is: a template to fill in, in development, or published."""

    TEMPLATE = "template"
    DEVELOPMENT = "development"
    RELEASE = "release"


@dataclass(frozen=True)
class Settings:
    """What checks depend on besides the notebook.

    `community` is part of the address that the community badge leads to; empty accepts
    any. `first_year` and `this_year` bound the copyright; `failures` are those of a
    run, by number of IPUs.
    """

    mode: Mode = Mode.RELEASE
    hosted: bool = False
    online: bool = False
    community: str = ""
    first_year: int = 2016
    this_year: int = 9999
    failures: tuple[tuple[int, Spot], ...] = ()


class Spot(NamedTuple):
    """Where something is wrong, and what exactly."""

    cell: int = 1
    line: int = 1
    detail: str = ""


Check: TypeAlias = Callable[[Document, Settings], Iterable[Spot]]


@dataclass(frozen=True)
class Rule:
    """One rule; `modes` are those of notebooks it holds for."""

    number: int
    part: str
    kind: Kind
    message: str
    remedy: str
    check: Check | None = None
    modes: frozenset[Mode] = frozenset(Mode)

    def __post_init__(self) -> None:
        if (self.check is None) != (self.kind is Kind.HUMAN):
            raise ValueError(f"{self.id}: people check human rules, code the others")

    @property
    def id(self) -> str:
        return f"N{self.number:02d}"


@dataclass(frozen=True)
class Finding:
    """What a rule found; `line` is that of a page of Markdown, 0 in a notebook."""

    rule: Rule
    path: str
    spot: Spot
    line: int = 0

    @property
    def is_error(self) -> bool:
        return self.rule.kind is Kind.AUTOMATIC

    @property
    def place(self) -> str:
        """Where to look: in a page by its lines, in a notebook by its cells."""
        if self.line:
            return f"{self.path}:{self.line}"
        return f"{self.path}: cell {self.spot.cell}, line {self.spot.line}"

    @property
    def text(self) -> str:
        detail = f": {self.spot.detail}" if self.spot.detail else ""
        return f"{self.rule.message}{detail}"


WRITTEN = frozenset({Mode.DEVELOPMENT, Mode.RELEASE})
RELEASED = frozenset({Mode.RELEASE})


def automatic(
    number: int,
    part: str,
    message: str,
    remedy: str,
    check: Check,
    modes: frozenset[Mode] = frozenset(Mode),
) -> Rule:
    """A rule whose findings fail a check."""
    return Rule(number, part, Kind.AUTOMATIC, message, remedy, check, modes)


def warning(
    number: int,
    part: str,
    message: str,
    remedy: str,
    check: Check,
    modes: frozenset[Mode] = WRITTEN,
) -> Rule:
    """A rule that can be mistaken: it warns."""
    return Rule(number, part, Kind.WARNING, message, remedy, check, modes)
