"""Checks files: finds configuration and history, runs notebooks if asked, lints.

In: a `Request`. Out: an `Outcome` over all files.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from popple.errors import UsageError, suggest
from popple.notebook.config import find_config
from popple.notebook.execute import execute
from popple.notebook.files import find_notebooks, load_document, load_notebook
from popple.notebook.linter import (
    Outcome,
    Silence,
    apply_silences,
    check_document,
    find_rule,
)
from popple.notebook.rule import Finding, Mode, Settings, Spot
from popple.notebook.rulebook import ALL
from popple.notebook.rules.running import MINIMUM_IPUS, RECOMMENDED_IPUS

_FIRST_YEAR = 2016


@dataclass(frozen=True)
class Request:
    """What to check, and how thoroughly; `only` are ids of rules, all if empty."""

    paths: tuple[Path, ...]
    mode: str = "release"
    online: bool = False
    runs: bool = False
    only: tuple[str, ...] | list[str] = ()


def check_files(request: Request, environment: Mapping[str, str]) -> Outcome:
    """Check every file by the nearest configuration."""
    for name in request.only:
        if find_rule(name) is None:
            known = [rule.id for rule in ALL]
            raise UsageError(f"There is no rule {name!r}.", remedy=suggest(name, known))
    findings: list[Finding] = []
    silences: dict[Silence, None] = {}
    for path in find_notebooks(list(request.paths)):
        config = find_config(path.parent)
        settings = Settings(
            Mode(request.mode),
            config.hosted,
            request.online,
            config.community,
            _first_year(path),
            date.today().year,
            _failures(path, environment) if request.runs else (),
        )
        findings += check_document(load_document(path), settings)
        silences.update(dict.fromkeys(config.silences))
    if request.only:
        findings = [each for each in findings if each.rule.id in request.only]
    return apply_silences(findings, tuple(silences))


def _first_year(path: Path) -> int:
    """The year of a file's first commit, if it has a history."""
    command = ["git", "log", "--follow", "--diff-filter=A", "--format=%ad"]
    try:
        done = subprocess.run(
            [*command, "--date=format:%Y", "--", path.name],
            cwd=path.resolve().parent,
            capture_output=True,
            text=True,
        )
    except OSError:
        return _FIRST_YEAR
    years = [int(word) for word in done.stdout.split()]
    return min(years, default=_FIRST_YEAR)


def _failures(
    path: Path, environment: Mapping[str, str]
) -> tuple[tuple[int, Spot], ...]:
    """What goes wrong with each number of IPUs that the rules ask for."""
    found: list[tuple[int, Spot]] = []
    for count in (RECOMMENDED_IPUS, MINIMUM_IPUS):
        own = {
            **environment,
            "NUM_AVAILABLE_IPU": str(count),
            "GRAPHCORE_POD_TYPE": f"pod{count}",
        }
        done = execute(load_notebook(path), path.parent, own)
        if not done.passed:
            found.append((count, done.spot))
    return tuple(found)
