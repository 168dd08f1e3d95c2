"""Findings as text, as JSON and as annotations of GitHub."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from popple.notebook.linter import Outcome, checklist
from popple.notebook.rule import Finding


def render_text(outcome: Outcome) -> str:
    """One finding to two lines: where and what, then what to do."""
    lines: list[str] = []
    for finding in outcome.findings:
        word = "error" if finding.is_error else "warning"
        lines.append(f"{finding.place}: {word} {finding.rule.id}: {finding.text}.")
        lines.append(f"    {finding.rule.remedy}")
    for silence, count in outcome.silenced.items():
        lines.append(f"{silence.rule} is silenced ({count} findings): {silence.reason}")
    counts = f"{outcome.num_errors} errors, {outcome.num_warnings} warnings"
    return "\n".join([*lines, counts])


def render_checklist() -> str:
    """What a reviewer has to judge."""
    lines = ["For the reviewer:"]
    lines += [f"  [ ] {r.id} {r.message}. ({r.remedy})" for r in checklist()]
    return "\n".join(lines)


def render_json(outcome: Outcome) -> str:
    """Everything, for programs."""
    silenced = [
        {"rule": s.rule, "reason": s.reason, "count": count}
        for s, count in outcome.silenced.items()
    ]
    questions = [{"rule": r.id, "question": r.message} for r in checklist()]
    everything = {
        "findings": [_as_data(finding) for finding in outcome.findings],
        "silenced": silenced,
        "checklist": questions,
        "errors": outcome.num_errors,
        "warnings": outcome.num_warnings,
    }
    return json.dumps(everything, indent=2)


def _as_data(finding: Finding) -> dict[str, str | int]:
    return {
        "path": finding.path,
        "place": finding.place,
        "cell": finding.spot.cell,
        "line": finding.spot.line,
        "rule": finding.rule.id,
        "section": finding.rule.part,
        "kind": finding.rule.kind.value,
        "message": finding.text,
        "remedy": finding.rule.remedy,
    }


def render_github(outcome: Outcome) -> str:
    """Workflow commands, which GitHub shows beside a file.

    A notebook's lines are those of its JSON, so the cell is told in words.
    """
    lines: list[str] = []
    for finding in outcome.findings:
        word = "error" if finding.is_error else "warning"
        spot = finding.spot
        cell = "" if finding.line else f"cell {spot.cell}, line {spot.line}: "
        line = f"line={finding.line}," if finding.line else ""
        message = _escape(f"{cell}{finding.text}. {finding.rule.remedy}")
        title = f"title={finding.rule.id} {finding.rule.part}"
        lines.append(f"::{word} file={finding.path},{line}{title}::{message}")
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


FORMATS: Mapping[str, Callable[[Outcome], str]] = {
    "text": render_text,
    "json": render_json,
    "github": render_github,
}
