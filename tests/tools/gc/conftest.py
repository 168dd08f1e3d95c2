"""Tools run in this process, with state of the test's own and a small machine."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

VARIABLES = (
    "POPPLE_TARGET",
    "IPUOF_VIPU_API_PARTITION_ID",
    "IPUOF_CONFIG_PATH",
    "GRAPHCORE_POD_TYPE",
    "GCDA_OPTIONS",
    "IPU_APP_EVENT_RECORD_PATH",
    "VIPU_CLI_API_HOST",
)
SMALL = """name = "small"
base = "bow-pod4"

[chip]
name = "small-bow"
num_tiles = 64
"""

Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory and a home of the test's own, and no choice of a machine."""
    monkeypatch.setenv("POPPLE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "state"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is a pod of four chips with 64 tiles each."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    monkeypatch.setenv("POPPLE_TARGET", str(path))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a tool by the name of its module: status, stdout, stderr."""

    def call(name: str, *words: str) -> tuple[int, str, str]:
        module = importlib.import_module(f"popple.tools.gc.{name}")
        capsys.readouterr()  # what the test's own programs have said
        try:
            status = module.main(list(words))
        except SystemExit as end:
            status = int(end.code or 0)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return call


@pytest.fixture
def run_json(run: Run) -> Callable[..., Any]:
    """Runs a tool that passes, and reads the JSON it prints."""

    def call(name: str, *words: str) -> Any:
        status, out, err = run(name, *words, "-j")
        assert (status, err) == (0, "")
        return json.loads(out)

    return call


@pytest.fixture
def inject(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Simulates faults from now on."""

    def call(*faults: object, count: int = 1, rearm: bool = False) -> None:
        options = {
            "simulateSOCError.errorList": list(faults),
            "simulateSOCError.triggerCount": count,
            "simulateSOCError.rearmOnReset": rearm,
        }
        monkeypatch.setenv("GCDA_OPTIONS", json.dumps(options))

    return call
