"""Which tensor is the loss: the one marked loss that feeds no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.capture.torch import ActiveTrace
from popple.capture.torch.losses import LOSS_FUNCTIONS, LossMarks
from popple.errors import CaptureError
from tests.capture.torch.tracing import operators, trace


def final_loss(forward: Callable[[Tensor], object]) -> Tensor:
    """The loss of a function of one trained tensor."""
    weight = torch.ones(3, 4, requires_grad=True)
    with LossMarks() as marks:
        forward(weight)
    return marks.final_loss()


def test_a_loss_of_torch_is_found_wherever_it_is() -> None:
    def forward(x: Tensor) -> Tensor:
        F.mse_loss(x, torch.zeros(3, 4))
        return x

    assert final_loss(forward).item() == 1.0


def test_loss_modules_count_as_well() -> None:
    loss = final_loss(lambda x: torch.nn.CrossEntropyLoss()(x, torch.tensor([0, 1, 2])))
    assert loss.item() == pytest.approx(torch.tensor(4.0).log().item())


def test_without_a_loss_the_remedy_is_named() -> None:
    with pytest.raises(CaptureError, match="Couldn't find a loss") as error:
        final_loss(lambda x: x.sum())
    assert "identity_loss" in error.value.remedy


def test_two_losses_that_do_not_meet_are_refused() -> None:
    target = torch.zeros(3, 4)
    with pytest.raises(CaptureError, match="Multiple independent losses") as error:
        final_loss(lambda x: (F.mse_loss(x, target), F.l1_loss(x, target)))
    assert "identity_loss" in error.value.remedy


def test_a_loss_that_feeds_another_does_not_count() -> None:
    def forward(x: Tensor) -> Tensor:
        inner = F.mse_loss(x, torch.zeros(3, 4))
        return F.l1_loss(2 * inner, torch.zeros(()))

    assert final_loss(forward).item() == 2.0


def test_a_marked_sum_of_losses_is_one_loss() -> None:
    weight = torch.ones(3, 4, requires_grad=True)
    target = torch.zeros(3, 4)
    with LossMarks() as marks:
        total = F.mse_loss(weight, target) + F.l1_loss(weight, target)
        marks.mark(total)
    assert marks.final_loss() is total


def test_a_loss_added_to_in_place_is_the_sum() -> None:
    def forward(x: Tensor) -> None:
        loss = F.mse_loss(x, torch.zeros(3, 4))
        loss += F.l1_loss(x, torch.zeros(3, 4))

    assert final_loss(forward).item() == 2.0


def test_a_loss_of_constants_counts_only_alone() -> None:
    fixed = torch.ones(2)
    both = final_loss(lambda x: (F.mse_loss(x, 0 * x), F.l1_loss(fixed, fixed)))
    assert both.requires_grad
    assert not final_loss(lambda x: F.l1_loss(fixed, fixed)).requires_grad


def test_every_loss_function_of_torch_is_known() -> None:
    names = {n for n in dir(F) if n.endswith("_loss") and not n.startswith("_")}
    names |= {"cross_entropy", "kl_div", "binary_cross_entropy"}
    known = {function.__name__ for function in LOSS_FUNCTIONS}
    # linear_cross_entropy and the like may come with newer versions of torch.
    assert names - known <= {"linear_cross_entropy"}


def test_a_front_end_marks_through_the_trace() -> None:
    traces: list[ActiveTrace] = []

    class Marked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor) -> Tensor:
            loss = (x * self.weight).exp()
            traces[0].mark_loss(loss)
            return loss

    step = trace(Marked(), torch.ones(2), train=True, listener=traces.append)
    # A loss that is no scalar starts from a gradient of ones.
    assert "aten.ones_like" in operators(step)
    assert step.trainable == ("weight",)
