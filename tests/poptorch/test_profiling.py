"""Trace points, with and without a trace library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import poptorch
from poptorch import profiling
from tests.poptorch.models import Scale, options


@pytest.fixture(autouse=True)
def _forget_library() -> Iterator[None]:
    yield
    profiling._find_library.cache_clear()
    profiling._make_channel.cache_clear()


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a trace library would have recorded."""
    seen: list[str] = []

    @contextmanager
    def tracepoint(channel: str, name: str) -> Iterator[None]:
        seen.append(f"{channel}:{name}")
        yield

    library = SimpleNamespace(
        createTraceChannel=lambda name: f"<{name}>",
        Tracepoint=tracepoint,
        instrument=lambda obj, methods, channel: seen.append(f"{channel} {methods}"),
    )
    monkeypatch.setitem(sys.modules, "libpvti", library)  # pyright: ignore[reportArgumentType]
    monkeypatch.setenv("PVTI_OPTIONS", '{"enable":"true"}')
    profiling._find_library.cache_clear()
    profiling._make_channel.cache_clear()
    return seen


def test_nothing_happens_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PVTI_OPTIONS", raising=False)
    channel: Any = profiling.Channel("app")
    thing = object()
    with channel.tracepoint("work"):
        assert channel.instrument(thing, "run") is thing


def test_without_the_library_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PVTI_OPTIONS", "{}")
    monkeypatch.setitem(sys.modules, "libpvti", None)
    with profiling.Channel("app").tracepoint("work"):
        pass


def test_trace_points_have_the_names_of_their_channel(events: list[str]) -> None:
    channel = profiling.Channel("app")
    with channel.tracepoint("work"):
        pass
    channel.instrument(object(), "run", "stop")
    assert events == ["<app>:app.work", "<app> ('run', 'stop')"]


def test_models_trace_compilation_and_execution(events: list[str]) -> None:
    model = poptorch.inferenceModel(Scale(), options())
    model(torch.ones(2))
    name = "poptorch.inferenceModel"
    parts = [event for event in events if event.startswith(f"<{name}>:")]
    assert parts == [
        f"<{name}>:{name}.model{part}" for part in ("Compilation", "Execution")
    ]
