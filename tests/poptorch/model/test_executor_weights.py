"""When weights travel between host and device: the table of the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import Scale, options

X = torch.ones(2)


def train(module: nn.Module, **counts: int) -> poptorch.PoplarExecutor:
    """A training model; every call lowers the weight by 1/2."""
    sgd = poptorch.optim.SGD(module.parameters(), lr=1.0)
    return poptorch.trainingModel(module, options(**counts), sgd)


def infer(module: Any) -> poptorch.PoplarExecutor:
    """An inference model; for ones it gives the mean of the weights."""
    return poptorch.inferenceModel(module, options())


def count_copies(model: poptorch.PoplarExecutor) -> list[str]:
    """Filled with the copies between host and device that the model makes."""
    copies: list[str] = []
    for name in ("copyWeightsToHost", "copyWeightsToDevice"):
        original = getattr(model, name)

        def counted(name: str = name, original: Callable[[], None] = original) -> None:
            copies.append(name.removeprefix("copyWeightsTo"))
            original()

        setattr(model, name, counted)
    return copies


def set_weight(module: Scale, value: float) -> None:
    with torch.no_grad():
        module.weight.fill_(value)


# -- compile and attach


def test_compiling_takes_the_weights_of_that_moment() -> None:
    module = Scale()
    model = infer(module)
    set_weight(module, 5)
    assert model(X).item() == 5


def test_attaching_takes_the_weights_again() -> None:
    module = Scale()
    model = infer(module)
    model(X)
    model.detachFromDevice()
    set_weight(module, 5)
    assert model(X).item() == 5


def test_attaching_a_training_model_keeps_the_optimizers_state() -> None:
    def train_twice(detach: bool) -> Tensor:
        module = Scale()
        adam = poptorch.optim.Adam(module.parameters(), lr=0.1)
        model = poptorch.trainingModel(module, options(), adam)
        for factor in (1, 3):
            model(factor * X)
            if detach:
                model.detachFromDevice()
        return module.weight.detach().clone()

    assert torch.equal(train_twice(detach=True), train_twice(detach=False))


# -- training call


def test_a_training_call_copies_nothing() -> None:
    model = train(Scale())
    model(X)
    copies = count_copies(model)
    model(X)
    assert copies == []


# -- reads of the module's tensors

READS: dict[str, Callable[[Scale], Any]] = {
    "parameters": lambda m: next(iter(m.parameters())).tolist(),
    "attribute": lambda m: m.weight.tolist(),
    "data": lambda m: m.weight.data.tolist(),
    "named": lambda m: dict(m.named_parameters())["weight"].tolist(),
    "state dict": lambda m: m.state_dict()["weight"].tolist(),
    "forward": lambda m: m(torch.ones(2)).expand(2).tolist(),
    "list of tensors": lambda m: torch.stack([m.weight])[0].tolist(),
    "by keyword": lambda m: torch.neg(input=m.weight).neg().tolist(),
    "numpy": lambda m: m.weight.detach().numpy().tolist(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_copies_once(read: Callable[[Scale], Any]) -> None:
    module = Scale()
    model = train(module)
    model(X)
    copies = count_copies(model)
    assert read(module) == [0.5, 0.5]
    assert read(module) == [0.5, 0.5]
    assert copies == ["Host"]


def test_if_needed_says_whether_it_copied() -> None:
    module = Scale()
    model = train(module)
    model(X)
    assert model.copyWeightsToHostIfNeeded() is True
    assert model.copyWeightsToHostIfNeeded() is False
    model(X)
    assert module.copyWeightsToHostIfNeeded() is True  # type: ignore[operator]


# -- inference beside training


def test_inference_wrapped_after_training_follows_it() -> None:
    module = Scale()
    trainer = train(module)
    trainer(X)
    follower = infer(module)
    assert follower(X).item() == 0.5
    trainer(X)
    assert follower(X).item() == 0.0


def test_an_executor_may_be_wrapped_instead_of_its_module() -> None:
    trainer = train(Scale())
    trainer(X)
    assert infer(trainer)(X).item() == infer(trainer.model)(X).item() == 0.5


def test_inference_copies_only_when_training_moved() -> None:
    module = Scale()
    trainer = train(module)
    follower = infer(module)
    trainer(X)
    follower(X)
    copies = count_copies(follower)
    follower(X)
    assert copies == []
    trainer(X)
    follower(X)
    assert copies == ["Device"]


def test_a_follower_that_was_detached_sees_the_newest_weights() -> None:
    module = Scale()
    trainer = train(module)
    follower = infer(module)
    trainer(X)
    follower(X)
    follower.detachFromDevice()
    trainer(X)
    assert follower(X).item() == 0.0


def test_a_follower_sees_the_last_weights_of_a_destroyed_trainer() -> None:
    module = Scale()
    trainer = train(module)
    follower = infer(module)
    trainer(X)
    follower(X)
    trainer(X)
    trainer.destroy()
    assert follower(X).item() == 0.0


def test_inference_wrapped_before_training_does_not_follow() -> None:
    module = Scale()
    early = infer(module)
    assert early(X).item() == 1.0
    train(module)(X)
    assert early(X).item() == 1.0


# -- explicit copies


def test_copying_to_the_device_discards_what_was_not_read() -> None:
    module = Scale()
    model = train(module)
    model(X)
    model.copyWeightsToDevice()
    assert module.weight.tolist() == [1, 1]


def test_copying_to_the_host_brings_buffers_too() -> None:
    class Counts(Scale):
        def forward(self, x: Tensor) -> Tensor:
            (seen,) = self.buffers()
            seen.add_(1)
            return super().forward(x)

    module = Counts()
    model = infer(module)
    for _ in range(3):
        model(X)
    (seen,) = module.buffers()
    assert seen.tolist() == [0, 0]  # inference never copies by itself
    model.copyWeightsToHost()
    assert seen.tolist() == [3, 3]
    model(X)
    model.detachFromDevice()  # and what is not copied is lost
    assert seen.tolist() == [3, 3]
    model(X)
    model.copyWeightsToHost()
    assert seen.tolist() == [4, 4]


# -- loading and editing on the host


def test_loading_into_the_executor_reaches_the_device() -> None:
    module = Scale()
    model = infer(module)
    model(X)
    state = {"weight": torch.full((2,), 7.0), "seen": torch.zeros(2)}
    model.load_state_dict(state)
    assert model(X).item() == 7.0


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m.load_state_dict({"weight": 7 * X, "seen": 0 * X}),
        lambda m: m.weight.data.fill_(7),
        lambda m: set_weight(m, 7),
    ],
    ids=["load_state_dict", "data", "no_grad"],
)
@pytest.mark.parametrize("wrap", [train, infer])
def test_edits_of_the_module_do_not_reach_the_device(wrap: Any, edit: Any) -> None:
    module = Scale()
    model = wrap(module)
    model(X)
    edit(module)
    # A training call has lowered the weight by a half; neither has seen the edit.
    assert model(X).item() == (0.5 if wrap is train else 1.0)


def test_an_edit_reaches_the_device_when_copied() -> None:
    module = Scale()
    model = infer(module)
    model(X)
    set_weight(module, 7)
    model.copyWeightsToDevice()
    assert model(X).item() == 7.0


# -- named buffers


class Shifted(Scale):
    """Adds its buffer."""

    def forward(self, x: Tensor) -> Tensor:
        (shift,) = self.buffers()
        return super().forward(x) + shift.mean()


def test_named_buffers_are_sent_alone() -> None:
    module = Shifted()
    opts = options()
    opts.updatableNamedBuffers(["seen"])
    model = poptorch.inferenceModel(module, opts)
    assert model(X).item() == 1.0
    set_weight(module, 100)
    for buffer in module.buffers():
        buffer.fill_(10)
    model.copyNamedBuffersToDevice()
    assert model(X).item() == 11.0


def test_named_buffers_must_have_been_named() -> None:
    model = infer(Shifted())
    model(X)
    with pytest.raises(poptorch.Error, match="updatableNamedBuffers"):
        model.copyNamedBuffersToDevice()


def test_an_unknown_named_buffer_is_refused_when_compiling() -> None:
    opts = options()
    opts.updatableNamedBuffers(["sean"])
    model = poptorch.inferenceModel(Shifted(), opts)
    with pytest.raises(poptorch.Error, match="Did you mean 'seen'"):
        model(X)


# -- detach and destroy


@pytest.mark.parametrize("leave", ["detachFromDevice", "destroy"])
def test_leaving_the_device_saves_what_was_trained(leave: str) -> None:
    module = Scale()
    model = train(module)
    model(X)
    getattr(model, leave)()
    assert module.weight.tolist() == [0.5, 0.5]


def test_replicas_with_buffers_of_their_own_read_back_the_first() -> None:
    class Sees(Scale):
        def forward(self, x: Tensor) -> Tensor:
            (seen,) = self.buffers()
            seen.add_(x)
            return super().forward(x)

    module = Sees()
    opts = options(r=2).broadcastBuffers(False)
    poptorch_model = poptorch.inferenceModel(module, opts)
    poptorch_model(torch.tensor([1.0, 1.0, 5.0, 5.0]))
    poptorch_model.copyWeightsToHost()
    (seen,) = module.buffers()
    assert seen.tolist() == [1, 1]
