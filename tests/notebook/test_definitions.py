"""The hook and the action call commands that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from popple.tools.cli import build_parser
from tests.sources import ROOT


def commands() -> list[str]:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    found = [" ".join([hook["entry"], *hook.get("args", [])]) for hook in hooks]
    steps = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    return found + [step["run"] for step in steps if step["run"].startswith("popple")]


@pytest.mark.parametrize("command", commands())
def test_commands_can_be_parsed(command: str) -> None:
    values = {"mode": "release", "ipus": "4", "paths": "a.ipynb"}
    text = re.sub(r'"?\$\{\{ inputs\.(\w+) \}\}"?', lambda m: values[m[1]], command)
    words = text.split()[1:]
    # Hooks get the names of files from pre-commit.
    words += [] if words[-1] in (".", "a.ipynb") else ["a.ipynb"]
    assert build_parser().parse_args(words).paths == [Path(words[-1])]


def test_all_commands_are_seen() -> None:
    assert len(commands()) == 5
