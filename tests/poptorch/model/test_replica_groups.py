"""Weights that differ between groups of replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from poptorch import CommGroupType, VariableRetrievalMode
from poptorch._model.grouped_parameter import make_grouping
from tests.poptorch.models import options

ONE = VariableRetrievalMode.OnePerGroup
ALL = VariableRetrievalMode.AllReplicas


class Product(nn.Module):
    """x @ W; the loss is the mean of its squares."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.W = nn.Parameter(weight)

    def forward(self, x: Tensor) -> Any:
        out = x @ self.W
        return out, poptorch.identity_loss(out**2, "mean")


def weights(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("kind", "size", "groups"),
    [
        (CommGroupType.Consecutive, 2, [0, 0, 1, 1]),
        (CommGroupType.Orthogonal, 2, [0, 1, 0, 1]),
        (CommGroupType.Consecutive, 4, [0, 0, 0, 0]),
        (CommGroupType.NoGrouping, 0, [0, 1, 2, 3]),
    ],
)
def test_who_shares(kind: CommGroupType, size: int, groups: list[int]) -> None:
    grouping = make_grouping(kind, size, ONE, replicas=4)
    assert [grouping.group_of(replica) for replica in range(4)] == groups
    assert grouping.num_groups == max(groups) + 1


def test_every_replica_uses_the_weight_of_its_group() -> None:
    module = Product(torch.tensor([[[1.0]], [[10.0]]]))
    model = poptorch.inferenceModel(module, options(r=4))
    model.W.replicaGrouping(CommGroupType.Orthogonal, 2, ONE)
    out, _ = model(torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
    assert out.flatten().tolist() == [1, 20, 3, 40]


@pytest.mark.parametrize("kind", [CommGroupType.Consecutive, CommGroupType.Orthogonal])
@pytest.mark.parametrize("name", ["SGD", "AdamW", "LAMB", "RMSprop"])
def test_groups_train_as_if_alone(name: str, kind: CommGroupType) -> None:
    make = getattr(poptorch.optim, name)
    start, x = weights(2, 3, 2), weights(4, 5, 3)
    module = Product(start.clone())
    model = poptorch.trainingModel(
        module, options(r=4), make(module.parameters(), lr=0.1)
    )
    model.W.replicaGrouping(kind, 2, ONE)
    for _ in range(3):
        model(x.flatten(0, 1))
    members = make_grouping(kind, 2, ONE, 4).group_of
    for group in range(2):
        mine = [x[replica] for replica in range(4) if members(replica) == group]
        expected = train_alone(start[group], mine, make)
        torch.testing.assert_close(module.W[group].detach(), expected)


def train_alone(
    start: Tensor, inputs: list[Tensor], make: Callable[..., Any]
) -> Tensor:
    """The mean is over all four replicas, of other groups too."""
    module = Product(start.clone())
    optimizer = make(module.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for x in inputs:
            (module(x)[1] / 4).backward()
        optimizer.step()
    return module.W.detach()


def test_the_host_can_have_an_entry_for_every_replica() -> None:
    values = torch.tensor([1.0, 1.0, 5.0, 5.0]).reshape(4, 1, 1)
    module = Product(values.clone())
    sgd = poptorch.optim.SGD(module.parameters(), lr=0.5)
    model = poptorch.trainingModel(module, options(r=4), sgd)
    model.W.replicaGrouping(CommGroupType.Consecutive, 2, ALL)
    model(torch.ones(4, 1))
    # Two replicas of gradient 2 w each, over all four: w - 0.5 * 2 * 2 w / 4 = w / 2.
    assert module.W.flatten().tolist() == [0.5, 0.5, 2.5, 2.5]


def test_optimiser_state_has_the_same_first_dimension() -> None:
    module = Product(weights(4, 3, 2))
    adam = poptorch.optim.AdamW(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, options(r=4), adam)
    model.W.replicaGrouping(CommGroupType.NoGrouping, 0, ONE)
    model(torch.ones(4, 3))
    state = adam.state_dict()["ipu_state"]
    assert {name: value.shape[0] for name, value in state.items()} == {
        "Accl1___W": 4,
        "Accl2___W": 4,
        "Step___W": 4,
    }


def test_updated_weights_of_each_replica_can_be_anchored() -> None:
    opts = options(r=2)
    opts.anchorTensor("w", "UpdatedVar___W")
    module = Product(torch.tensor([1.0, 2.0]).reshape(2, 1, 1))
    model = poptorch.trainingModel(
        module, opts, poptorch.optim.SGD(module.parameters(), lr=0.0)
    )
    model.W.replicaGrouping(CommGroupType.NoGrouping, 0, ONE)
    model(torch.ones(2, 1))
    assert model.getAnchoredTensor("w").flatten().tolist() == [1, 2]


def test_all_is_as_without_groups() -> None:
    module = Product(torch.ones(1, 1))
    model = poptorch.inferenceModel(module, options(r=2))
    model.W.replicaGrouping(CommGroupType.All, 0, ONE)
    assert model(torch.ones(2, 1))[0].flatten().tolist() == [1, 1]


def test_the_proxy_is_a_parameter_in_all_else() -> None:
    module = Product(torch.tensor([3.0, 4.0]))
    proxy = poptorch.inferenceModel(module, options()).W
    assert proxy.shape == (2,)
    assert torch.linalg.norm(proxy).item() == 5
    assert repr(proxy) == repr(module.W)


@pytest.mark.parametrize(
    ("weight", "size", "error"),
    [
        (torch.ones(3, 1, 1), 2, "3 entries in its first dimension.*needs 2"),
        (torch.ones(()), 2, "is a scalar"),
        (torch.ones(2, 1, 1), 3, "Groups of 3 replicas do not divide 4"),
    ],
)
def test_groups_that_do_not_fit(weight: Tensor, size: int, error: str) -> None:
    model = poptorch.inferenceModel(Product(weight), options(r=4))

    def use() -> None:
        model.W.replicaGrouping(CommGroupType.Consecutive, size, ONE)
        model.compile(torch.ones(4, 1))

    with pytest.raises(poptorch.Error, match=error):
        use()


def test_grouping_comes_before_compiling() -> None:
    model = poptorch.inferenceModel(Product(torch.ones(1, 1)), options(r=2))
    model.compile(torch.ones(2, 1))
    with pytest.raises(poptorch.Error, match="the model is compiled"):
        model.W.replicaGrouping(CommGroupType.NoGrouping, 0, ONE)


def test_other_backends_have_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    model = poptorch.inferenceModel(Product(torch.ones(2, 1, 1)), options(r=2))
    model.W.replicaGrouping(CommGroupType.NoGrouping, 0, ONE)
    monkeypatch.setenv("POPPLE_BACKEND", "inductor")
    with pytest.raises(poptorch.Error, match="not available with the backend inductor"):
        model.compile(torch.ones(2, 1))
