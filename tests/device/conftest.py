"""Tests of devices keep their state to themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

VARIABLES = (
    "POPPLE_TARGET",
    "IPUOF_VIPU_API_PARTITION_ID",
    "IPUOF_CONFIG_PATH",
    "GRAPHCORE_POD_TYPE",
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own, and no choice of a machine."""
    monkeypatch.setenv("POPPLE_STATE", str(tmp_path / "state"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "state"
