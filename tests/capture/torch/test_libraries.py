"""Doubles of a library's operators answer while a step is traced, and only then."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from popple.capture.torch import PlainOperators, libraries, plain_operators

NAME = "foreign_test"
SCHEMA = "(Tensor x) -> Tensor"
DOUBLES = {"twice": lambda x: x + x}
TWICE = PlainOperators(NAME, NAME, DOUBLES)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A library with an operator that refuses to be traced."""
    monkeypatch.setitem(sys.modules, NAME, ModuleType(NAME))
    with torch.library._scoped_library(NAME, "DEF") as library:
        library.define(f"twice{SCHEMA}")
        library.impl(
            "twice",
            lambda x: torch.tensor([2 * v for v in x.tolist()]),
            "CompositeImplicitAutograd",
        )
        yield torch.ops.foreign_test


def test_an_operator_is_traced_as_its_double(library: Any) -> None:
    with plain_operators([TWICE]):
        traced = make_fx(lambda x: library.twice(x), tracing_mode="fake")(torch.ones(2))
    targets = [str(node.target) for node in traced.graph.nodes]
    assert "aten.add.Tensor" in targets
    assert traced(torch.ones(2)).tolist() == [2, 2]


def test_so_is_one_called_from_a_script(library: Any) -> None:
    script = torch.jit.CompilationUnit(
        "def f(x: Tensor) -> Tensor:\n    return torch.ops.foreign_test.twice(x)\n"
    )
    with plain_operators([TWICE]):
        traced = make_fx(script.f, tracing_mode="fake")(torch.ones(2))
    assert traced(torch.ones(3)).tolist() == [2, 2, 2]


def test_doubles_are_differentiated(library: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with plain_operators([TWICE]):
        library.twice(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]


def test_afterwards_the_operator_is_its_own_again(library: Any) -> None:
    with plain_operators([TWICE]):
        pass
    assert not library.twice(torch.ones(2, requires_grad=True)).requires_grad


def test_a_missing_operator_is_not_made_up(library: Any) -> None:
    with plain_operators([PlainOperators(NAME, NAME, {"thrice": lambda x: x})]):
        assert not hasattr(library, "thrice")


def test_operators_are_there_for_a_user_of_a_missing_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "user_test", ModuleType("user_test"))
    missing = PlainOperators("missing", NAME, DOUBLES, "user_test", {"twice": SCHEMA})
    with plain_operators([missing]):
        assert torch.ops.foreign_test.twice(torch.ones(1)).tolist() == [2]
    assert not hasattr(torch.ops.foreign_test, "twice")


def test_what_somebody_defined_in_place_of_a_missing_library_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "user_test", ModuleType("user_test"))
    missing = PlainOperators("missing", NAME, DOUBLES, "user_test", {"twice": SCHEMA})
    with torch.library._scoped_library(NAME, "FRAGMENT") as library:
        library.define(f"twice{SCHEMA}")
        library.impl("twice", torch.zeros_like, "CompositeImplicitAutograd")
        with plain_operators([missing]):
            assert torch.ops.foreign_test.twice(torch.ones(1)).tolist() == [2]
        assert torch.ops.foreign_test.twice(torch.ones(1)).tolist() == [0]


def test_nothing_is_done_for_libraries_that_are_not_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = PlainOperators("missing", NAME, DOUBLES, "absent")
    other = PlainOperators("missing", "other_test", DOUBLES)
    monkeypatch.setattr(libraries, "_library", pytest.fail)
    with plain_operators([absent, other]):
        pass
