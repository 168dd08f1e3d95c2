"""Checks notebooks against the rules.

In: documents, settings and the rules that are silenced. Out: findings, in the order of
the notebook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from popple.notebook.document import Document
from popple.notebook.rule import Finding, Kind, Rule, Settings, Spot
from popple.notebook.rulebook import ALL


@dataclass(frozen=True)
class Silence:
    """A rule that does not hold, for which files (all if empty), and why."""

    rule: str
    reason: str
    paths: tuple[str, ...] = ()

    def covers(self, rule: Rule, path: str) -> bool:
        is_path = not self.paths or any(path.endswith(each) for each in self.paths)
        return self.rule == rule.id and is_path


@dataclass(frozen=True)
class Outcome:
    """What a check found, and how often each silenced rule would have spoken."""

    findings: tuple[Finding, ...]
    silenced: Mapping[Silence, int] = field(default_factory=dict)

    @property
    def num_errors(self) -> int:
        return sum(finding.is_error for finding in self.findings)

    @property
    def num_warnings(self) -> int:
        return len(self.findings) - self.num_errors


def checklist() -> tuple[Rule, ...]:
    """The rules that people check."""
    return tuple(rule for rule in ALL if rule.kind is Kind.HUMAN)


def find_rule(text: str) -> Rule | None:
    """The rule of an id."""
    return next((rule for rule in ALL if rule.id == text), None)


def check_document(document: Document, settings: Settings) -> list[Finding]:
    """Everything that rules find in one notebook, from its top."""
    path = str(document.path or "notebook")
    found = [
        Finding(rule, path, spot, _line_of(document, spot))
        for rule in ALL
        for spot in _spots(rule, document, settings)
    ]
    return sorted(found, key=lambda each: (each.spot.cell, each.spot.line))


def _line_of(document: Document, spot: Spot) -> int:
    """The line in a page of Markdown; 0 in a notebook, which has cells."""
    cell = next((each for each in document.cells if each.number == spot.cell), None)
    return cell.first_line + spot.line - 1 if cell and cell.first_line else 0


def _spots(rule: Rule, document: Document, settings: Settings) -> Iterator:
    if rule.check is not None and settings.mode in rule.modes:
        yield from rule.check(document, settings)


def apply_silences(findings: list[Finding], silences: tuple[Silence, ...]) -> Outcome:
    """Leave out what is silenced, and count it."""
    kept: list[Finding] = []
    counts = dict.fromkeys(silences, 0)
    for finding in findings:
        cover = next(
            (s for s in silences if s.covers(finding.rule, finding.path)), None
        )
        if cover is None:
            kept.append(finding)
        else:
            counts[cover] += 1
    return Outcome(tuple(kept), counts)
