"""Outputs of a call: which micro-batches' results, in which shape and type."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from poptorch import OutputMode
from tests.poptorch.models import options


class TwoOutputs(nn.Module):
    """Gives its input [B, 10] and a scalar: its mean, which is also the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scaled = x * self.weight
        return scaled, poptorch.identity_loss(scaled, "mean")


def call(opts: poptorch.Options, size: int, training: bool) -> tuple[Tensor, Tensor]:
    """Outputs for samples that are all 0, all 1, all 2, ..."""
    x = torch.arange(float(size)).unsqueeze(1).expand(size, 10).contiguous()
    module = TwoOutputs()
    if not training:
        return poptorch.inferenceModel(module, opts)(x)
    frozen = poptorch.optim.SGD(module.parameters(), lr=0.0)
    return poptorch.trainingModel(module, opts, frozen)(x)


def every(n: int, **counts: int) -> poptorch.Options:
    return options(**counts).outputMode(OutputMode.EveryN, n)


FINAL, SUM, ALL = OutputMode.Final, OutputMode.Sum, OutputMode.All
CASES: dict[str, tuple[poptorch.Options, int, bool, Any, Any]] = {
    "all": (options(d=10), 10, False, [*range(10)], [*range(10)]),
    "every 5th": (every(5, d=10), 10, False, [4, 9], [4, 9]),
    "final": (options(d=10, mode=FINAL), 10, False, [9], 9),
    "sum": (options(d=10, mode=SUM), 10, False, [45], 45),
    # B=2: the last micro-batch of each of two replicas.
    "train replicas": (options(d=2, r=2), 8, True, [4, 5, 6, 7], [4.5, 6.5]),
    # B=5, G=2: 0+5, 1+6, ...; the means are 2 and 7.
    "train sum": (options(g=2, mode=SUM), 10, True, [5, 7, 9, 11, 13], 9),
    "train all": (
        *(options(d=3, g=2, r=2, mode=ALL), 12, True),
        *([*range(12)], [*range(12)]),
    ),
    # Every second of the eight micro-batches of four iterations.
    "train every 2nd": (every(2, d=4, g=2), 8, True, [1, 3, 5, 7], [1, 3, 5, 7]),
}


@pytest.mark.parametrize(
    ("opts", "size", "training", "rows", "scalars"), CASES.values(), ids=CASES
)
def test_modes(
    opts: poptorch.Options, size: int, training: bool, rows: list[int], scalars: Any
) -> None:
    out, loss = call(opts, size, training)
    assert out.shape == (len(rows), 10)
    assert out[:, 0].tolist() == rows
    assert loss.tolist() == scalars


def test_training_returns_the_last_micro_batch_by_default() -> None:
    out, loss = call(options(d=2, g=2), 8, training=True)
    assert out[:, 0].tolist() == [6, 7]
    assert loss.shape == ()


def test_every_n_must_divide_the_iterations() -> None:
    with pytest.raises(poptorch.Error, match="not a multiple"):
        poptorch.inferenceModel(TwoOutputs(), every(3, d=10))


def test_sums_are_not_taken_over_replicas() -> None:
    out, _ = call(options(g=2, r=2, mode=OutputMode.Sum), 4, training=True)
    # replica 0 saw 0 and 2, replica 1 saw 1 and 3
    assert out[:, 0].tolist() == [2, 4]


def test_replicas_that_share_an_input_read_the_same_share() -> None:
    opts = options(r=4)
    opts.inputReplicaGrouping(2, poptorch.CommGroupType.Consecutive)
    out, _ = call(opts, 2, training=False)
    assert out[:, 0].tolist() == [0, 0, 1, 1]


class Returns(nn.Module):
    """Returns what a function makes of its inputs."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def run(function: Any, *args: Any, d: int = 1) -> Any:
    return poptorch.inferenceModel(Returns(function), options(d=d))(*args)


Point = collections.namedtuple("Point", ["x", "y"])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: (x, [x, (x,)]),
        lambda x: {"a": x, "b": [x]},
        lambda x: Point(x, x),
        lambda x: [x, None, 3, "text"],
    ],
    ids=["tuples", "dict", "named", "other"],
)
def test_structures_come_back_as_they_were_returned(make: Any) -> None:
    x = torch.ones(2)
    result, expected = run(make, x), make(x)
    assert type(result) is type(expected)
    assert str(result) == str(expected)


def test_nothing_returned_is_none() -> None:
    assert run(lambda x: None, torch.ones(2)) is None


def test_types_are_those_of_the_device() -> None:
    x = torch.rand(2, 3)
    index, wide, half = run(lambda x: (x.argmax(1), x.double(), x.half()), x)
    assert (index.dtype, wide.dtype, half.dtype) == (
        torch.int32,
        torch.float32,
        torch.float16,
    )


def test_outputs_have_no_history() -> None:
    out, loss = call(options(), 2, training=True)
    assert not out.requires_grad
    assert not loss.requires_grad


def test_a_tensor_returned_twice_becomes_two() -> None:
    first, second = run(lambda x: (y := x * 2, y), torch.ones(2))
    first.zero_()
    assert second.tolist() == [2, 2]


def test_an_output_is_no_part_of_the_input() -> None:
    x = torch.ones(2)
    run(lambda x: x, x).zero_()
    assert x.tolist() == [1, 1]


def test_an_output_that_was_a_weight_does_not_change_later() -> None:
    class Gives(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor) -> Tensor:
            poptorch.identity_loss(x * self.weight, "sum")
            return self.weight

    module = Gives()
    sgd = poptorch.optim.SGD(module.parameters(), lr=1.0)
    model = poptorch.trainingModel(module, options(), sgd)
    before = model(torch.ones(2))
    model(torch.ones(2))
    assert before.tolist() == [1, 1]


def test_constants_come_once() -> None:
    x, constant = run(lambda x: (x, torch.ones(3)), torch.ones(4), d=4)
    assert (x.shape, constant.shape) == ((4,), (3,))


def test_a_tensor_filled_in_forward_is_no_constant() -> None:
    def fill(x: Tensor) -> Tensor:
        result = torch.zeros(1)
        result[0] = x.sum()
        return result

    assert run(fill, torch.tensor([1.0, 2.0]), d=2).tolist() == [1, 2]
