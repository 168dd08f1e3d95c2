"""Other tensors stand in a module for a while, wherever its own stand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from popple.capture.torch.swapped import swapped, tensor_at


class Tied(nn.Module):
    """One embedding under two names, and a layer tied to its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(5, 3)
        self.encoder = nn.ModuleDict({"embedding": self.shared})
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.shared.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder["embedding"](tokens))


PATHS = ("shared.weight", "encoder.embedding.weight", "head.weight")


@pytest.mark.parametrize("name", PATHS)
def test_every_place_of_a_tied_tensor_is_changed_and_put_back(name: str) -> None:
    module = Tied()
    own, other = module.head.weight, torch.ones(5, 3)
    with swapped(module, {name: other}):
        assert all(tensor_at(module, path) is other for path in PATHS)
        # 1 * 1 three times for each of five classes.
        assert module(torch.tensor([2])).tolist() == [[3.0] * 5]
    assert all(tensor_at(module, path) is own for path in PATHS)


def test_tensors_are_put_back_after_an_error() -> None:
    module = nn.BatchNorm1d(2)
    assert module.running_mean is not None
    own = module.running_mean
    with pytest.raises(ZeroDivisionError), swapped(module, {"running_mean": own + 1}):
        raise ZeroDivisionError
    assert module.running_mean is own


def test_a_path_without_a_tensor_gives_none() -> None:
    assert tensor_at(Tied(), "head.bias") is None
