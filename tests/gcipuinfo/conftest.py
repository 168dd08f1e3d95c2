"""Tests of the library keep their state to themselves, and their discovery mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcipuinfo._mode import MODE_OF_PROCESS

VARIABLES = (
    "POPPLE_TARGET",
    "IPUOF_VIPU_API_PARTITION_ID",
    "IPUOF_CONFIG_PATH",
    "GRAPHCORE_POD_TYPE",
    "GCDA_OPTIONS",
    "IPU_APP_EVENT_RECORD_PATH",
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own, and no choice of a machine."""
    monkeypatch.setenv("POPPLE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(MODE_OF_PROCESS, "_chosen", None)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "state"
