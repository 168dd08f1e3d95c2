"""What a project says about its notebooks: silenced rules, and settings of the checks.

In: `popple-notebook.toml`, or the table `[tool.popple.notebook]` of `pyproject.toml`,
the nearest one above a notebook. Out: a `Config`.

    [tool.popple.notebook]
    hosted = false                  # no platform runs these notebooks
    community = "example.org"       # part of the address of the community badge

    [tool.popple.notebook.silence.N39]
    reason = "setup is told in the README"
    paths = ["intro.ipynb"]         # all notebooks if left out
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from popple.errors import UsageError, suggest
from popple.notebook.linter import Silence, find_rule
from popple.notebook.rulebook import ALL

FILE = "popple-notebook.toml"
_TOML_MODULE = "tomllib" if sys.version_info >= (3, 11) else "tomli"
_KEYS = {"hosted": bool, "community": str, "silence": dict}


@dataclass(frozen=True)
class Config:
    """Settings of a project."""

    hosted: bool = False
    community: str = ""
    silences: tuple[Silence, ...] = ()


def find_config(directory: Path) -> Config:
    """The nearest configuration from a directory upwards."""
    for home in (directory.resolve(), *directory.resolve().parents):
        if (home / FILE).exists():
            return read_config(_load(home / FILE), str(home / FILE))
        project = home / "pyproject.toml"
        table = _load(project).get("tool", {}) if project.exists() else {}
        found = table.get("popple", {}).get("notebook")
        if found is not None:
            return read_config(found, str(project))
    return Config()


def _load(path: Path) -> dict[str, Any]:
    toml = import_module(_TOML_MODULE)
    try:
        return toml.loads(path.read_text("utf-8"))
    except toml.TOMLDecodeError as error:
        raise UsageError(f"{path} is no TOML: {error}.") from error


def read_config(table: Mapping[str, Any], where: str) -> Config:
    """The settings of a table; what it does not know, it refuses."""
    for key, value in table.items():
        kind = _KEYS.get(key)
        if kind is None:
            raise UsageError(
                f"There is no setting {key!r}.", where=where, remedy=suggest(key, _KEYS)
            )
        if not isinstance(value, kind):
            raise UsageError(f"{key} has to be a {kind.__name__}.", where=where)
    silences = tuple(
        _read_silence(name, value, where)
        for name, value in table.get("silence", {}).items()
    )
    return Config(table.get("hosted", False), table.get("community", ""), silences)


def _read_silence(name: str, value: Any, where: str) -> Silence:
    """A reason is required: it is what a later reader needs."""
    if find_rule(name) is None:
        known = [rule.id for rule in ALL]
        raise UsageError(
            f"There is no rule {name!r}.", where=where, remedy=suggest(name, known)
        )
    reason = value.get("reason") if isinstance(value, Mapping) else None
    if not isinstance(reason, str) or not reason.strip():
        raise UsageError(
            f"Rule {name} is silenced without a reason.",
            where=where,
            remedy='Write: reason = "...".',
        )
    return Silence(name, reason, tuple(value.get("paths", ())))
