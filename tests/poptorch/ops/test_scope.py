"""Names and attributes of parts of the model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import poptorch
from popple.graph import NO_NOTES, Notes, Op
from tests.poptorch.models import options
from tests.poptorch.running import compiled

X = torch.ones(2)


def ops_of(model: poptorch.PoplarExecutor) -> dict[str, Op]:
    """The ops of a compiled model by kind."""
    graph = model.__popple__().graph
    return {op.kind: op for op in graph.ops}


def test_names_begin_with_the_scopes_they_are_in() -> None:
    def forward(x: Tensor) -> Tensor:
        with poptorch.NameScope("outer"):
            x = x.relu()
            with poptorch.NameScope("inner"):
                x = x.exp()
        return x.neg()

    model = compiled(forward)
    model.compile(X)
    ops = ops_of(model)
    assert ops["relu"].name == "outer/relu"
    assert ops["exp"].name == "outer/inner/exp"
    assert ops["neg"].name == "neg"


def test_scopes_stand_behind_the_module() -> None:
    class Inner(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            with poptorch.NameScope("scope"):
                return x.relu()

    model = poptorch.inferenceModel(nn.Sequential(Inner()), options())
    model.compile(X)
    assert ops_of(model)["relu"].name == "0/scope/relu"


def test_attributes_reach_ops_made_inside() -> None:
    def forward(x: Tensor) -> Tensor:
        with poptorch.Attribute(__outline={"layer": "first"}):
            x = x.relu()
            with poptorch.Attribute(__outline={"layer": "second"}, other={"n": 1}):
                x = x.exp()
        return x.neg()

    model = compiled(forward)
    model.compile(X)
    ops = ops_of(model)
    assert dict(ops["relu"].notes.labels) == {"__outline.layer": "first"}
    labels = {"__outline.layer": "second", "other.n": "1"}
    assert dict(ops["exp"].notes.labels) == labels
    assert ops["neg"].notes == NO_NOTES


def test_the_block_size_of_solvers_is_a_number() -> None:
    def forward(x: Tensor) -> Tensor:
        with poptorch.Attribute(poplin={"blockSize": 16}, other={"n": 1}):
            return x.relu()

    model = compiled(forward)
    model.compile(X)
    notes = Notes(block_size=16, labels=(("other.n", "1"),))
    assert ops_of(model)["relu"].notes == notes
    with pytest.raises(poptorch.Error, match="a number of rows, not 'all'"):
        poptorch.Attribute(poplin={"blockSize": "all"})


def test_on_the_cpu_scopes_do_nothing() -> None:
    scope = poptorch.NameScope("scope")
    with scope, scope, poptorch.Attribute(a={"b": "c"}):
        assert torch.equal(X.neg(), -X)


def test_a_scope_ends_when_forward_fails() -> None:
    def forward(x: Tensor) -> Tensor:
        with poptorch.NameScope("scope"):
            raise KeyError("user")

    with pytest.raises(KeyError, match="user"):
        compiled(forward).compile(X)
    model = compiled(torch.relu)
    model.compile(X)
    assert ops_of(model)["relu"].name == "relu"


def test_a_name_is_a_string() -> None:
    with pytest.raises(AssertionError, match="must be a string"):
        poptorch.NameScope(3)  # pyright: ignore[reportArgumentType]
