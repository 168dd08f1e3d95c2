"""Tests of graphs need torch_geometric, and virtual devices of their own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("torch_geometric") else ["*.py", "ops/*.py"]


@pytest.fixture(autouse=True)
def _own_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh virtual pod for every test."""
    monkeypatch.setenv("POPPLE_STATE", str(tmp_path / "state"))
