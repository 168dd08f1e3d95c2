"""Tracing switched on, into a directory of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from libpvti import _channels
from libpvti._options import Options
from libpvti._tracing import TRACING
from popple.trace import Trace, read_trace


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(TRACING, "options", Options(directory=tmp_path))
    monkeypatch.setattr(TRACING, "is_on", True)
    monkeypatch.setattr(TRACING, "_session", None)
    monkeypatch.setattr(_channels, "_CHANNELS", [])
    yield
    TRACING.close()


@pytest.fixture
def finish(tracing: None) -> Callable[[], Trace]:
    """Ends the trace and reads it."""

    def finish() -> Trace:
        path = TRACING.session.path
        TRACING.close()
        return read_trace(path)

    return finish
