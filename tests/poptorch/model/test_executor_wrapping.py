"""The wrapped module: its classes, its copies, its pickles."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from poptorch._model.host_tensors import PoptorchBuffer, PoptorchParameter
from tests.poptorch.models import Scale, options

X = torch.ones(2)


class Tied(nn.Module):
    """Two names for one weight, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.ones(2))
        self.second = self.first
        self.scale = Scale()

    def forward(self, x: Tensor) -> Tensor:
        return self.scale(x * self.first + self.second)


def wrapped(module: nn.Module | None = None) -> Any:
    """A module that has been trained for one step."""
    module = Tied() if module is None else module
    sgd = poptorch.optim.SGD(module.parameters(), lr=0.5)
    poptorch.trainingModel(module, options(), sgd)(X)
    return module


def test_classes_change_and_stay_what_they_were() -> None:
    module = wrapped(Scale())
    assert type(module).__name__ == "PoptorchScale"
    assert isinstance(module, Scale)
    assert type(module.weight) is PoptorchParameter
    assert isinstance(module.weight, nn.Parameter)
    assert type(module.seen) is PoptorchBuffer
    assert isinstance(module.seen, torch.Tensor)


def test_inference_leaves_the_module_alone() -> None:
    module = Scale()
    poptorch.inferenceModel(module, options())(X)
    assert type(module) is Scale
    assert type(module.weight) is nn.Parameter


def test_wrapping_keeps_tensors_in_place() -> None:
    module = Scale()
    weight, optimizer = module.weight, torch.optim.SGD(module.parameters(), lr=0.1)
    poptorch.trainingModel(module, options(), optimizer)
    assert module.weight is weight
    assert optimizer.param_groups[0]["params"][0] is weight


def test_copy_stays_wrapped_and_shares_parameters() -> None:
    module = wrapped()
    duplicate = copy.copy(module)
    assert type(duplicate) is type(module)
    assert duplicate.first is module.first


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save"])
def test_deep_copies_are_plain_and_up_to_date(how: str) -> None:
    module = wrapped()
    duplicate = _duplicate(module, how)
    assert type(duplicate) is Tied
    assert type(duplicate.first) is nn.Parameter
    assert type(duplicate.scale.seen) is torch.Tensor
    assert duplicate.first is duplicate.second
    assert not any("_poptorch_link" in vars(part) for part in duplicate.modules())
    assert duplicate.first.tolist() == module.first.tolist() != [1, 1]


def _duplicate(module: Any, how: str) -> Any:
    if how == "deepcopy":
        return copy.deepcopy(module)
    if how == "pickle":
        return pickle.loads(pickle.dumps(module))
    stream = io.BytesIO()
    torch.save(module, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=False)


def test_a_deep_copy_can_be_wrapped_and_trains_apart() -> None:
    module = wrapped()
    duplicate = wrapped(copy.deepcopy(module))
    assert duplicate.first.tolist() != module.first.tolist()


def test_own_pickling_of_the_users_class_is_kept() -> None:
    duplicate = pickle.loads(pickle.dumps(wrapped(Forgetful())))
    assert duplicate.cache is None


class Forgetful(Scale):
    """Does not pickle its cache."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: list[int] | None = [1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": None}


def test_state_dict_holds_plain_copies() -> None:
    module = wrapped()
    state = module.state_dict()
    assert {type(value) for value in state.values()} == {torch.Tensor}
    state["first"].zero_()
    assert module.first.tolist() != [0, 0]
    assert module.state_dict(keep_vars=True)["first"] is module.first


def test_results_of_wrapped_tensors_are_plain() -> None:
    module = wrapped(Scale())
    assert type(module.weight * 2) is torch.Tensor
    assert type(module.weight.detach()) is torch.Tensor


def test_the_module_still_runs_and_trains_on_the_cpu() -> None:
    module = wrapped(Scale())
    before = module.weight.tolist()
    module(X).backward()
    assert module.weight.grad.tolist() == [0.5, 0.5]
    torch.optim.SGD(module.parameters(), lr=1.0).step()
    assert module.weight.tolist() == [w - 0.5 for w in before]


def test_unwrapping_leaves_nothing_behind() -> None:
    module = wrapped()
    module.destroy()
    assert "_poptorch_link" not in vars(module)
    assert "_poptorch_link" not in vars(module.first)
    assert type(module.scale.seen) is torch.Tensor


def test_a_buffer_of_an_own_class_is_refused() -> None:
    class Special(torch.Tensor):
        pass

    module = nn.Module()
    module.register_buffer("odd", torch.ones(2).as_subclass(Special))
    with pytest.raises(poptorch.Error, match="Buffer odd has the class Special"):
        poptorch.trainingModel(module, options(), torch.optim.SGD([X], lr=0.1))
    assert type(module) is nn.Module
