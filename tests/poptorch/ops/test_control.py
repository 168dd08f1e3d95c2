"""for_loop and cond."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options
from tests.poptorch.running import Function, compiled, on_ipu

X = torch.tensor([1.0, 2.0])
TRUE, FALSE = torch.tensor([True]), torch.tensor([False])


def trained(function: Callable[..., Any]) -> poptorch.PoplarExecutor:
    """A training model whose loss is the sum of a linear layer and the function."""
    module = nn.Sequential(nn.Linear(2, 2), Function(function))
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.1)
    return poptorch.trainingModel(module, options(), optimizer)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_loop_runs_as_often_as_it_says(count: int) -> None:
    def forward(x: Tensor, y: Tensor) -> list[Tensor]:
        return poptorch.for_loop(count, lambda a, b: (a + b, b * 2), [x, y])

    # b doubles from 1, so a grows by 1 + 2 + 4 + ... = 2^count - 1.
    a, b = on_ipu(forward, X, torch.ones(2))
    assert torch.equal(a, X + 2**count - 1)
    assert torch.equal(b, torch.full((2,), 2.0**count))


def test_outside_a_model_a_loop_runs_once() -> None:
    (result,) = poptorch.for_loop(10, lambda x: x * 2, [X])
    assert torch.equal(result, X * 2)


def test_a_body_gets_copies() -> None:
    x = X.clone()
    (result,) = on_ipu(lambda x: poptorch.for_loop(3, lambda a: a.add_(1), [x]), x)
    assert torch.equal(result, X + 3)
    assert torch.equal(x, X)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: (x, x), "number of tensors: 1, not 2"),
        (lambda x: x.sum(), "shapes and types"),
        (lambda x: x.half(), "shapes and types"),
    ],
)
def test_a_body_must_return_what_it_takes(body: Any, message: str) -> None:
    with pytest.raises(poptorch.Error, match=message):
        on_ipu(lambda x: poptorch.for_loop(2, body, [x]), X)


def test_a_count_must_be_a_number_of_times() -> None:
    with pytest.raises(poptorch.Error, match="number of times, not -1"):
        on_ipu(lambda x: poptorch.for_loop(-1, torch.neg, [x]), X)


@pytest.mark.parametrize(
    ("inputs", "message"), [((X,), "not list"), ([X, 5], "at index 1")]
)
def test_inputs_are_a_list_of_tensors(inputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        poptorch.for_loop(2, torch.neg, inputs)
    with pytest.raises(ValueError, match=message):
        poptorch.cond(TRUE, torch.neg, inputs, torch.neg, [X])


def test_loops_and_branches_are_for_inference() -> None:
    def loop(x: Tensor) -> Tensor:
        return poptorch.identity_loss(poptorch.for_loop(2, torch.neg, [x])[0], "sum")

    def branch(x: Tensor) -> Tensor:
        (y,) = poptorch.cond(x.sum() > 0, torch.neg, [x], torch.abs, [x])
        return poptorch.identity_loss(y, "sum")

    with pytest.raises(poptorch.Error, match=r"for_loop\(\) is only supported in inf"):
        trained(loop)(X.view(1, 2))
    with pytest.raises(poptorch.Error, match=r"cond\(\) is only supported in inf"):
        trained(branch)(X.view(1, 2))


def branched(condition: Tensor, x: Tensor) -> list[Tensor]:
    """x + 1 and x, or x * 10 and -x."""
    return poptorch.cond(
        condition, lambda a: (a + 1, a), [x], lambda a: (a * 10, x.neg()), [x]
    )


def test_the_condition_decides_in_every_run() -> None:
    model = compiled(branched)
    for condition, expected in ((TRUE, [X + 1, X]), (FALSE, [X * 10, -X])):
        for results in (model(condition, X), branched(condition, X)):
            assert all(map(torch.equal, results, expected))


def test_branches_can_be_nested() -> None:
    def forward(outer: Tensor, inner: Tensor, x: Tensor) -> Tensor:
        def then(x: Tensor) -> Tensor:
            return poptorch.cond(inner, torch.neg, [x], torch.exp, [x])[0]

        return poptorch.cond(outer, then, [x], torch.sin, [x])[0]

    model = compiled(forward)
    assert torch.equal(model(TRUE, TRUE, X), -X)
    assert torch.equal(model(TRUE, FALSE, X), X.exp())
    assert torch.equal(model(FALSE, TRUE, X), X.sin())


def test_only_the_branch_taken_prints(capfd: pytest.CaptureFixture[str]) -> None:
    def shown(title: str) -> Callable[[Tensor], Tensor]:
        return lambda x: poptorch.ipu_print_tensor(x, title)

    def forward(condition: Tensor, x: Tensor) -> list[Tensor]:
        return poptorch.cond(condition, shown("then"), [x], shown("else"), [x])

    model = compiled(forward)
    model(TRUE, X)
    assert capfd.readouterr().err.startswith("then: ")
    model(FALSE, X)
    assert capfd.readouterr().err.startswith("else: ")


def test_arguments_of_branches_are_copies() -> None:
    x = X.clone()
    forward = lambda c, x: poptorch.cond(c, lambda a: a.add_(1), [x], torch.neg, [x])  # noqa: E731
    assert torch.equal(on_ipu(forward, FALSE, x)[0], -X)
    assert torch.equal(x, X)


def test_a_branch_must_not_write_to_tensors_from_outside() -> None:
    def forward(c: Tensor, x: Tensor) -> list[Tensor]:
        y = x + 1
        return poptorch.cond(c, lambda: y.add_(1), [], lambda: y * 1, [])

    with pytest.raises(poptorch.Error, match="changes a tensor from outside in place"):
        on_ipu(forward, TRUE, X)


def test_branches_must_return_alike() -> None:
    def forward(c: Tensor, x: Tensor) -> list[Tensor]:
        return poptorch.cond(c, torch.neg, [x], torch.sum, [x])

    with pytest.raises(poptorch.Error, match="must return the same shapes"):
        on_ipu(forward, TRUE, X)


def test_a_condition_has_one_element() -> None:
    with pytest.raises(poptorch.Error, match="one element, not 2"):
        on_ipu(branched, torch.tensor([True, False]), X)
