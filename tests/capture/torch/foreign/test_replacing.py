from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from popple.capture.torch.foreign import plain_operators, replacing


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A library with an operator that refuses to be traced."""
    monkeypatch.setitem(sys.modules, "foreign_test", ModuleType("foreign_test"))
    key = ("foreign_test", "foreign_test")
    monkeypatch.setattr(replacing, "_DOUBLES", {key: {"twice": lambda x: x + x}})
    with torch.library._scoped_library("foreign_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl(
            "twice",
            lambda x: torch.tensor([2 * v for v in x.tolist()]),
            "CompositeImplicitAutograd",
        )
        yield torch.ops.foreign_test


def test_an_operator_is_traced_as_its_double(library: Any) -> None:
    with plain_operators():
        traced = make_fx(lambda x: library.twice(x), tracing_mode="fake")(torch.ones(2))
    targets = [str(node.target) for node in traced.graph.nodes]
    assert "aten.add.Tensor" in targets
    assert traced(torch.ones(2)).tolist() == [2, 2]


def test_so_is_one_called_from_a_script(library: Any) -> None:
    script = torch.jit.CompilationUnit(
        "def f(x: Tensor) -> Tensor:\n    return torch.ops.foreign_test.twice(x)\n"
    )
    with plain_operators():
        traced = make_fx(script.f, tracing_mode="fake")(torch.ones(2))
    assert traced(torch.ones(3)).tolist() == [2, 2, 2]


def test_doubles_are_differentiated(library: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with plain_operators():
        library.twice(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]


def test_afterwards_the_operator_is_its_own_again(library: Any) -> None:
    with plain_operators():
        pass
    assert not library.twice(torch.ones(2, requires_grad=True)).requires_grad


def test_a_missing_operator_is_not_made_up(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ("foreign_test", "foreign_test")
    monkeypatch.setattr(replacing, "_DOUBLES", {key: {"thrice": lambda x: x}})
    with plain_operators():
        assert not hasattr(library, "thrice")


def test_pyg_operators_are_there_while_torch_geometric_is_traced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "pyg_lib" in sys.modules:
        pytest.skip("pyg-lib brings the operators itself")
    geometric = ModuleType("torch_geometric")
    monkeypatch.setitem(sys.modules, "torch_geometric", geometric)
    points = torch.tensor([[0.0], [2.0], [3.0]])
    was_there = hasattr(torch.ops.pyg, "nearest")
    with plain_operators():
        assert torch.ops.pyg.nearest(points, points[1:]).tolist() == [0, 0, 1]
    assert hasattr(torch.ops.pyg, "nearest") is was_there


def test_pyg_operators_that_somebody_defined_are_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = "twice(Tensor x) -> Tensor"
    geometric = ModuleType("torch_geometric")
    monkeypatch.setitem(sys.modules, "torch_geometric", geometric)
    monkeypatch.setattr(replacing, "_PYG_SCHEMAS", {schema: torch.neg})
    monkeypatch.setattr(replacing, "_PYG_DOUBLES", {"twice": lambda x: x + x})
    with torch.library._scoped_library("pyg", "FRAGMENT") as library:
        library.define(schema)
        library.impl("twice", torch.zeros_like, "CompositeImplicitAutograd")
        with plain_operators():
            assert torch.ops.pyg.twice(torch.ones(1)).tolist() == [2]
        assert torch.ops.pyg.twice(torch.ones(1)).tolist() == [0]


def test_nothing_is_registered_for_libraries_that_are_not_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for (module, _), _ in replacing._DOUBLES.items():
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delitem(sys.modules, "torch_geometric", raising=False)
    monkeypatch.setattr(replacing, "_library", pytest.fail)
    with plain_operators():
        pass
