"""Findings as text, JSON and GitHub's annotations."""

from __future__ import annotations

import json
from pathlib import Path

from popple.notebook.files import load_document
from popple.notebook.formats import FORMATS, render_checklist
from popple.notebook.linter import Outcome, Silence, check_document, find_rule
from popple.notebook.rule import Finding, Rule, Settings, Spot


def rule_of(name: str) -> Rule:
    rule = find_rule(name)
    assert rule is not None
    return rule


OUTCOME = Outcome(
    (
        Finding(rule_of("N61"), "a.ipynb", Spot(3, 2, "'etc.'")),
        Finding(rule_of("N54"), "a.ipynb", Spot(4, 1, "300 words")),
    ),
    {Silence("N39", "told elsewhere"): 1},
)


def test_text_says_where_what_and_what_to_do() -> None:
    lines = FORMATS["text"](OUTCOME).splitlines()
    assert lines[0] == "a.ipynb: cell 3, line 2: error N61: A latinism: 'etc.'."
    assert lines[1].startswith("    Write 'for example'")
    assert lines[2].startswith("a.ipynb: cell 4, line 1: warning N54")
    assert lines[4:] == [
        "N39 is silenced (1 findings): told elsewhere",
        "1 errors, 1 warnings",
    ]


def test_json_has_everything() -> None:
    data = json.loads(FORMATS["json"](OUTCOME))
    assert (data["errors"], data["warnings"]) == (1, 1)
    assert data["findings"][0]["rule"] == "N61"
    assert data["findings"][1]["kind"] == "warning"
    assert len(data["checklist"]) == 14


def test_github_shows_annotations() -> None:
    first, second = FORMATS["github"](OUTCOME).splitlines()
    assert first.startswith("::error file=a.ipynb,title=N61 wording::cell 3, line 2: A")
    assert second.startswith("::warning file=a.ipynb,title=N54 body::")


def test_the_checklist_asks_fourteen_questions() -> None:
    assert render_checklist().count("[ ]") == 14


def test_pages_of_markdown_have_lines(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\n```\n\nAnd so on, etc.\n")
    found = check_document(load_document(page), Settings())
    (latinism,) = [each for each in found if each.rule.id == "N61"]
    assert latinism.place == f"{page}:7"
    printed = FORMATS["github"](Outcome((latinism,)))
    assert f"::error file={page},line=7,title=N61" in printed
