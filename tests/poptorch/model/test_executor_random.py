"""The device's random numbers: repeatable, moving on, apart from the host's."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options

X = torch.ones(4)


class Draws(nn.Module):
    """Adds random numbers to its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand(x.shape)


def draws(seed: int | None = None, **counts: int) -> poptorch.PoplarExecutor:
    opts = options(**counts)
    if seed is not None:
        opts.randomSeed(seed)
    return poptorch.inferenceModel(Draws(), opts)


def test_fresh_models_repeat() -> None:
    first, second = draws(42), draws(42)
    for _ in range(2):
        assert torch.equal(first(X), second(X))


def test_successive_calls_differ() -> None:
    model = draws(42)
    assert not torch.equal(model(X), model(X))


def test_seeds_differ() -> None:
    assert not torch.equal(draws(1)(X), draws(2)(X))


def test_replicas_and_iterations_draw_different_numbers() -> None:
    out = draws(42, d=2, r=2)(X)
    assert len(set(out.tolist())) == 4


def test_the_hosts_numbers_do_not_depend_on_the_model() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    model = draws()
    model(X)
    model(X)
    assert torch.equal(torch.rand(3), expected)


def test_the_models_numbers_do_not_depend_on_the_host() -> None:
    first = draws(42)
    expected = [first(X), first(X)]
    second = draws(42)
    results = []
    for _ in range(2):
        torch.rand(7)
        results.append(second(X))
    assert all(map(torch.equal, results, expected))


def test_the_state_is_kept_over_detach_and_forgotten_by_destroy() -> None:
    model = draws(42)
    first = model(X)
    model.detachFromDevice()
    assert not torch.equal(model(X), first)
    model.destroy()
    assert torch.equal(model(X), first)


def test_dropout_is_random_when_training_and_nothing_else() -> None:
    module = nn.Dropout(0.5)
    model = poptorch.inferenceModel(module, options().randomSeed(1))
    out = model(torch.ones(1000))
    assert set(out.tolist()) == {0.0, 2.0}
    assert poptorch.inferenceModel(module.eval(), options())(X).tolist() == [1] * 4
