"""Tests of the facade hold devices of their own, so that they can run side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import poptorch


@pytest.fixture(autouse=True)
def _own_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh virtual pod for every test; nothing of the user's environment."""
    monkeypatch.setenv("POPPLE_STATE", str(tmp_path / "state"))
    for name in ("POPPLE_TARGET", "POPPLE_REPORT", "POPLAR_ENGINE_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("IPUOF_VIPU_API_PARTITION_ID", "IPUOF_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GRAPHCORE_POD_TYPE", raising=False)
    for name in ("IPU_MODEL", "SMALL_IPU_MODEL", "CACHE_DIR", "DEFAULT_OPTIONS"):
        monkeypatch.delenv(f"POPTORCH_{name}", raising=False)


@pytest.fixture(autouse=True)
def _nothing_is_traced_afterwards() -> Iterator[None]:
    """Whatever a test does, the next one begins on the CPU."""
    yield
    assert not poptorch.isRunningOnIpu()
