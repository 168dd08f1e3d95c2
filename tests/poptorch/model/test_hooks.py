"""Hooks round compilation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import poptorch
from tests.poptorch.models import Scale, options


@pytest.fixture
def calls() -> Iterator[list[str]]:
    """Filled by a hook before and one after compilations."""
    seen: list[str] = []
    handles = [
        poptorch.registerPreCompileHook(lambda: seen.append("before")),
        poptorch.registerPreCompileHook(lambda: seen.append("before too")),
        poptorch.registerPostCompileHook(lambda: seen.append("after")),
    ]
    yield seen
    for handle in handles:
        handle.remove()


def test_hooks_run_once_around_compilation(calls: list[str]) -> None:
    model = poptorch.inferenceModel(Scale(), options())
    model(torch.ones(2))
    model(torch.ones(2))
    assert calls == ["before", "before too", "after"]


def test_hooks_after_run_even_if_compilation_fails(calls: list[str]) -> None:
    with pytest.raises(RuntimeError):
        poptorch.inferenceModel(Scale(), options())(torch.ones(3))
    assert calls[-1] == "after"


def test_a_removed_hook_is_not_called() -> None:
    seen: list[int] = []
    handle = poptorch.registerPreCompileHook(lambda: seen.append(1))
    handle.remove()
    poptorch.inferenceModel(Scale(), options())(torch.ones(2))
    assert seen == []


@pytest.mark.parametrize(
    "register", [poptorch.registerPreCompileHook, poptorch.registerPostCompileHook]
)
def test_a_hook_must_be_callable(register: object) -> None:
    with pytest.raises(RuntimeError, match="must be callable"):
        register("not a function")  # type: ignore[operator]
