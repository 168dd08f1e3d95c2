"""`popple cache`: what is there, and what goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from popple.errors import UsageError
from popple.session import ExecutableCache
from popple.tools.cache import find_directory, parse_age, parse_size, render_age
from popple.tools.cli import main

KEYS = ("12" * 32, "34" * 32)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    made = ExecutableCache(tmp_path)
    for key in KEYS:
        described = {"name": "training", "framework": "poptorch", "version": "9.9"}
        made.store(key, {"data": bytes(3000)}, described)
    os.utime(made.path_of(KEYS[0]), (0, 0))
    return tmp_path


def test_entries_are_listed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "list", "--dir", str(cache)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-3:-1]] == [
        f"{KEYS[1][:16]}.poplar_exec",
        f"{KEYS[0][:16]}.poplar_exec",
    ]
    assert "training" in lines[-2]
    assert "9.9" in lines[-2]
    assert lines[-1].startswith("2 programs")


def test_old_entries_are_pruned(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", "prune", "--dir", str(cache), "--older-than", "1d"]) == 0
    assert "Removed 1 of" in capsys.readouterr().out
    assert [path.name[:2] for path in cache.iterdir()] == ["34"]


def test_pruning_to_a_size(cache: Path) -> None:
    assert main(["cache", "prune", "--dir", str(cache), "--max-size", "0B"]) == 0
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    "options", [[], ["--max-size", "much"], ["--older-than", "yesterday"]]
)
def test_what_to_remove_must_be_said(
    cache: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", "prune", "--dir", str(cache), *options]) == 2
    assert "popple: error:" in capsys.readouterr().err
    assert len(list(cache.iterdir())) == 2


def test_sizes_and_ages() -> None:
    assert parse_size("2GiB") == 2 * 2**30
    assert parse_size("1.5 kB") == 1500
    assert parse_size("7") == 7
    assert parse_age("12h") == 12 * 3600
    assert parse_age("2w") == 14 * 86400
    assert render_age(3 * 3600) == "3 h ago"
    assert render_age(90) == "90 s ago"


def test_the_environment_names_the_cache(tmp_path: Path) -> None:
    flags = f"--use_ipu_model --executable_cache_path={tmp_path}"
    assert find_directory(None, {"TF_POPLAR_FLAGS": flags}) == tmp_path
    assert find_directory(None, {"POPART_CACHE_DIR": str(tmp_path)}) == tmp_path
    with pytest.raises(UsageError, match="no cache is named"):
        find_directory(None, {})
    with pytest.raises(UsageError, match="no directory"):
        find_directory(tmp_path / "nothing", {})
