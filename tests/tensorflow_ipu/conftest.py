"""What tests of the TensorFlow facade share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def own_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A Pod16 of this test's own, no flags, and no configuration before or after."""
    from tensorflow.python.ipu import _device

    _device.reset()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("TF_IPU_COUNT", "TF_POPLAR_FLAGS", "POPPLE_TARGET", "POPPLE_STATE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("IPUOF_VIPU_API_PARTITION_ID", "GRAPHCORE_POD_TYPE"):
        monkeypatch.delenv(name, raising=False)
    yield
    _device.reset()
