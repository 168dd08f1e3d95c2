"""ipu_print_tensor: what a compiled model shows on stderr."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options
from tests.poptorch.running import compiled

X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
Capture = pytest.CaptureFixture[str]


def test_every_run_prints(capfd: Capture) -> None:
    model = compiled(lambda x: poptorch.ipu_print_tensor(x, "x") + 1)
    assert torch.equal(model(X), X + 1)
    assert capfd.readouterr().err == "x: (\n (1.000,2.000)\n (3.000,4.000)\n)\n"
    model(X * 2)
    assert "(2.000,4.000)" in capfd.readouterr().err


def test_an_unused_result_is_not_printed(capfd: Capture) -> None:
    def forward(x: Tensor) -> Tensor:
        poptorch.ipu_print_tensor(x, "x")
        return x + 1

    compiled(forward)(X)
    assert capfd.readouterr().err == ""


def test_nothing_is_printed_on_the_cpu(capfd: Capture) -> None:
    assert poptorch.ipu_print_tensor(X, "x") is X
    assert capfd.readouterr().err == ""


def test_only_the_first_character_of_brackets_counts(capfd: Capture) -> None:
    def forward(x: Tensor) -> Tensor:
        return poptorch.ipu_print_tensor(
            x, "x", separator=" ~", open_bracket="[[", close_bracket="]]", digits=2
        )

    compiled(forward)(X[0])
    assert capfd.readouterr().err == "x: [1.0 2.0]\n"


@pytest.mark.parametrize("print_gradient", [True, False])
def test_gradients_are_printed_under_a_title_of_their_own(
    capfd: Capture, print_gradient: bool
) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([2.0]))

        def forward(self, x: Tensor) -> Tensor:
            shown = poptorch.ipu_print_tensor(
                self.weight * x, "product", print_gradient
            )
            return poptorch.identity_loss(shown * 3, "sum")

    poptorch.trainingModel(Model(), options())(torch.tensor([5.0]))
    shown = capfd.readouterr().err
    assert "product: (10.00)" in shown
    assert ("product_gradient: (3.000)" in shown) == print_gradient


def test_without_a_title_there_is_a_name(capfd: Capture) -> None:
    compiled(lambda x: poptorch.ipu_print_tensor(x.relu()) + 1)(X[0])
    assert capfd.readouterr().err == "relu: (1.000,2.000)\n"


def test_each_micro_batch_prints(capfd: Capture) -> None:
    model = compiled(lambda x: poptorch.ipu_print_tensor(x, "x"), options(d=2))
    model(X)
    assert capfd.readouterr().err.count("x: ") == 2


def test_a_wrong_format_is_refused() -> None:
    with pytest.raises(poptorch.Error, match="auto, fixed, scientific, none"):
        poptorch.ipu_print_tensor(X, float_format="hex")
