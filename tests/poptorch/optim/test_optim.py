"""Optimisers: arguments, const attributes, CPU steps, state dicts."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

from poptorch import optim

TORCH = {
    optim.SGD: torch.optim.SGD,
    optim.Adam: torch.optim.Adam,
    optim.AdamW: torch.optim.AdamW,
    optim.RMSprop: torch.optim.RMSprop,
    optim.LAMB: torch.optim.Optimizer,
}
ALL = list(TORCH)


def weights(*values: float) -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.tensor(values or (1.0, -2.0)))]


def made(kind: Any, **arguments: Any) -> Any:
    return kind(weights(), lr=0.1, **arguments)


@pytest.mark.parametrize(("kind", "parent"), TORCH.items())
def test_second_base_is_torchs_class(kind: type, parent: type) -> None:
    assert kind.__bases__ == (optim.Optimizer, parent)


def test_sgd_needs_a_learning_rate() -> None:
    with pytest.raises(TypeError, match="lr"):
        optim.SGD(weights())  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("kind", ALL)
def test_extra_defaults(kind: Any) -> None:
    optimizer = made(kind)
    assert optimizer.loss_scaling == 1.0
    assert optimizer.accum_type == torch.float32
    if kind in (optim.SGD, optim.Adam, optim.AdamW):
        assert optimizer.max_grad_norm == float("inf")


def test_lamb_defaults() -> None:
    optimizer = optim.LAMB(weights())
    assert optimizer.defaults == {
        "lr": 1e-3,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 1e-2,
        "max_weight_norm": 65500.0,
    }
    assert optimizer.bias_correction is True


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        (optim.SGD, "accum_type"),
        (optim.SGD, "velocity_accum_type"),
        (optim.Adam, "first_order_momentum_accum_type"),
        (optim.AdamW, "second_order_momentum_accum_type"),
        (optim.RMSprop, "accum_type"),
        (optim.LAMB, "first_order_momentum_accum_type"),
    ],
)
def test_accumulation_types(kind: Any, argument: str) -> None:
    half = made(kind, **{argument: torch.float16})
    assert getattr(half, argument) == torch.float16
    with pytest.raises(AssertionError, match=f"{argument} is torch.int32"):
        made(kind, **{argument: torch.int32})


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW])
def test_amsgrad_is_refused(kind: Any) -> None:
    made(kind, amsgrad=False)
    with pytest.raises(ValueError, match="amsgrad"):
        made(kind, amsgrad=True)


@pytest.mark.parametrize("kind", ALL)
def test_given_arguments_are_variable(kind: Any) -> None:
    attrs = made(kind, weight_decay=0.5).variable_attrs
    assert not attrs.isConstant("lr")
    assert not attrs.isConstant("weight_decay")
    assert attrs.isConstant("loss_scaling")


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW, optim.RMSprop, optim.LAMB])
def test_a_defaulted_learning_rate_is_constant(kind: Any) -> None:
    assert kind(weights()).variable_attrs.isConstant("lr")


def test_marking() -> None:
    attrs = made(optim.SGD, momentum=0.9).variable_attrs
    attrs.markAsConstant("momentum")
    attrs.markAsVariable("loss_scaling")
    attrs.markAsVariable("loss_scaling")
    attrs.markAsConstant("lr")
    assert attrs.isConstant("momentum")
    assert attrs.isConstant("lr")
    assert not attrs.isConstant("loss_scaling")
    attrs.markAsConstant("loss_scaling")
    assert attrs.isConstant("loss_scaling")


@pytest.mark.parametrize("method", ["markAsConstant", "markAsVariable"])
def test_marking_unknown_attributes(method: str) -> None:
    attrs = made(optim.SGD).variable_attrs
    with pytest.raises(AssertionError, match="'momentum'"):
        getattr(attrs, method)("momentumm")


def test_velocity_scaling_only_in_the_combined_variant(
    caplog: pytest.LogCaptureFixture,
) -> None:
    separate = made(optim.SGD, velocity_scaling=2.0)
    assert "velocity_scaling is ignored" in caplog.text
    assert "velocity_scaling" not in separate.defaults
    combined = made(optim.SGD, velocity_scaling=2.0, use_combined_accum=True)
    assert combined.param_groups[0]["velocity_scaling"] == 2.0
    assert made(optim.SGD, use_combined_accum=True).defaults["velocity_scaling"] == 1.0


def test_velocity_scaling_per_group() -> None:
    groups = [{"params": weights(), "velocity_scaling": 4.0}, {"params": weights()}]
    optimizer = optim.SGD(groups, lr=0.1, use_combined_accum=True, velocity_scaling=2.0)
    assert [g["velocity_scaling"] for g in optimizer.param_groups] == [4.0, 2.0]


STEPS = [
    (optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    (optim.Adam, {"betas": (0.8, 0.9), "eps": 1e-6}),
    (optim.AdamW, {"weight_decay": 0.2}),
    (optim.RMSprop, {"momentum": 0.5, "centered": True}),
]


@pytest.mark.parametrize(("kind", "arguments"), STEPS)
def test_cpu_step_is_torchs(kind: Any, arguments: dict[str, Any]) -> None:
    mine, theirs = weights(1.0, -3.0), weights(1.0, -3.0)
    ours = kind(mine, lr=0.1, loss_scaling=8.0, **arguments)
    reference = TORCH[kind](theirs, lr=0.1, **arguments)
    for step in range(3):
        for (weight,), optimizer in ((mine, ours), (theirs, reference)):
            weight.grad = torch.tensor([0.5, float(step)])
            optimizer.step()
    assert torch.equal(mine[0], theirs[0])


def test_lamb_first_step() -> None:
    # Bias-corrected moments of the first step are g and g*g, so the direction is
    # sign(g) = (1, 1); with decay 0.5: u = (1, 1) + 0.5 * (3, 4) = (2.5, 3).
    (weight,) = params = weights(3.0, 4.0)
    weight.grad = torch.tensor([2.0, 7.0])
    optim.LAMB(params, lr=0.1, weight_decay=0.5, eps=0.0).step()
    direction = torch.tensor([2.5, 3.0])
    expected = torch.tensor([3.0, 4.0]) - 0.1 * direction * 5.0 / direction.norm()
    torch.testing.assert_close(weight.detach(), expected)


def test_lamb_limits_the_weight_norm() -> None:
    (weight,) = params = weights(3.0, 4.0)
    weight.grad = torch.ones(2)
    optim.LAMB(params, lr=1.0, weight_decay=0.0, eps=0.0, max_weight_norm=2.0).step()
    # Direction (1, 1) with norm sqrt(2); step length is min(5, 2).
    moved = (torch.tensor([3.0, 4.0]) - weight.detach()).norm()
    torch.testing.assert_close(moved, torch.tensor(2.0))


def test_lamb_ratio_is_one_for_zero_weights() -> None:
    (weight,) = params = weights(0.0, 0.0)
    weight.grad = torch.ones(2)
    optim.LAMB(params, lr=0.1, weight_decay=0.0, eps=0.0).step()
    torch.testing.assert_close(weight.detach(), torch.full((2,), -0.1))


def test_lamb_without_bias_correction() -> None:
    # m = 0.1 * g, v = 0.001 * g * g: u = 0.1 / sqrt(0.001) in every component.
    (weight,) = params = weights(0.0, 0.0)
    weight.grad = torch.tensor([5.0, 5.0])
    optim.LAMB(params, lr=1.0, weight_decay=0.0, eps=0.0, bias_correction=False).step()
    expected = torch.full((2,), -0.1 / 0.001**0.5)
    torch.testing.assert_close(weight.detach(), expected)


def test_lamb_closure_and_missing_gradient() -> None:
    params = weights()
    before = params[0].detach().clone()
    assert optim.LAMB(params).step(lambda: 7.0) == 7.0
    assert torch.equal(before, params[0])


@pytest.mark.parametrize("kind", ALL)
def test_state_dict_before_compilation(kind: Any) -> None:
    optimizer = made(kind)
    state = optimizer.state_dict()
    assert list(state) == ["ipu_state", "ipu_param", "state", "param_groups"]
    assert state["ipu_state"] is None
    assert state["ipu_param"] is None
    assert not optimizer.has_state()


class Device:
    """A provider of device state that counts how often it is read."""

    def __init__(self) -> None:
        self.num_reads = 0

    def read(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        self.num_reads += 1
        return {"Accl1___w": torch.ones(1)}, {"lossScaling_FLOAT": torch.tensor(1.0)}


def test_device_state_is_read_when_dirty_only() -> None:
    optimizer, device = made(optim.Adam), Device()
    optimizer._ipu_state = device
    optimizer.host_state_is_dirty = True
    state = optimizer.state_dict()
    assert list(state["ipu_state"]) == ["Accl1___w"]
    optimizer.state_dict()
    assert device.num_reads == 1
    assert optimizer.has_state()


def test_edits_of_a_state_dict_do_not_reach_the_optimizer() -> None:
    optimizer = made(optim.Adam)
    optimizer._ipu_state, optimizer.host_state_is_dirty = Device(), True
    optimizer.state_dict()["ipu_state"].clear()
    assert optimizer.state_dict()["ipu_state"]


def test_loading_marks_the_device_state_as_old() -> None:
    optimizer, target = made(optim.Adam), made(optim.Adam)
    optimizer._ipu_state, optimizer.host_state_is_dirty = Device(), True
    target.load_state_dict(optimizer.state_dict())
    assert target.ipu_state_is_dirty
    assert not target.host_state_is_dirty
    assert list(target.state_dict()["ipu_param"]) == ["lossScaling_FLOAT"]


def test_torch_state_is_refused() -> None:
    state = torch.optim.SGD(weights(), lr=0.1).state_dict()
    message = "Only IPU optimizer states can be loaded onto the IPU."
    with pytest.raises(RuntimeError, match=message):
        made(optim.SGD).load_state_dict(state)
    with pytest.raises(RuntimeError, match="empty"):
        made(optim.SGD).load_state_dict({})


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))]
)
def test_copies_keep_the_extras(kind: Any, copied: Any) -> None:
    optimizer = made(kind, loss_scaling=4.0, accum_type=torch.float16)
    optimizer._ipu_state = Device()
    twin = copied(optimizer)
    assert twin.loss_scaling == 4.0
    assert twin.accum_type == torch.float16
    assert twin._ipu_state is None
    assert not twin.variable_attrs.isConstant("loss_scaling")


def test_schedulers_work() -> None:
    optimizer = made(optim.SGD)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)
