"""An optimiser and its twin on the device: state that is read, loaded and kept."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest
import torch

import poptorch
from poptorch import optim
from tests.poptorch.models import Scale, options

X = torch.ones(2)
NAME = "weight"


def train(
    make: Any = optim.Adam, opts: poptorch.Options | None = None, **arguments: Any
) -> tuple[Scale, Any, poptorch.PoplarExecutor]:
    module = Scale()
    optimizer = make(module.parameters(), **{"lr": 0.5, **arguments})
    model = poptorch.trainingModel(module, opts or options(), optimizer)
    return module, optimizer, model


def state_of(optimizer: Any) -> dict[str, Any]:
    return {k: v.tolist() for k, v in optimizer.state_dict()["ipu_state"].items()}


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="poptorch::python")
    return caplog


def test_there_is_no_state_before_compiling_and_offline() -> None:
    _, adam, _ = train()
    assert adam.state_dict()["ipu_state"] is None
    _, adam, offline = train(opts=options().useOfflineIpuTarget())
    offline.compile(X)
    assert adam.state_dict()["ipu_param"] is None


def test_state_by_name() -> None:
    _, adam, model = train(betas=(0.5, 0.5))
    model(X)
    # Gradients are 1/2: halves of it, and of its square.
    assert state_of(adam) == {
        "Accl1___weight": [0.25, 0.25],
        "Accl2___weight": [0.125, 0.125],
        "Step___weight": 1.0,
    }
    parameters = adam.state_dict()["ipu_param"]
    assert parameters["learningRate___specific___weight"].item() == 0.5


@pytest.mark.parametrize(
    ("make", "arguments", "names"),
    [
        (optim.SGD, {}, set()),
        (optim.SGD, {"momentum": 0.5}, {"Accl1"}),
        (optim.SGD, {"momentum": 0.5, "use_combined_accum": True}, {"Accl"}),
        (optim.LAMB, {"bias_correction": False}, {"Accl1", "Accl2"}),
        (optim.RMSprop, {}, {"Accl1"}),
        (
            optim.RMSprop,
            {"centered": True, "momentum": 0.5},
            {"Accl1", "Accl2", "Accl3"},
        ),
    ],
)
def test_names_of_state(make: Any, arguments: dict[str, Any], names: set[str]) -> None:
    _, optimizer, model = train(make, **arguments)
    model.compile(X)
    found = optimizer.state_dict()["ipu_state"]
    assert set(found) == {f"{name}___weight" for name in names}


def test_state_is_held_in_the_type_asked_for() -> None:
    _, adam, model = train(first_order_momentum_accum_type=torch.float16)
    model(X)
    state = adam.state_dict()["ipu_state"]
    assert state["Accl1___weight"].dtype is torch.float16
    assert state["Accl2___weight"].dtype is torch.float32


def test_a_copy_of_the_state_is_kept_until_the_next_call(log: Any) -> None:
    _, adam, model = train()
    model(X)
    first = adam.state_dict()
    assert "Writing optimiser state tensors from IPU to host." in log.text
    log.clear()
    assert adam.state_dict()["ipu_state"].keys() == first["ipu_state"].keys()
    assert "Using cached optimiser state dict" in log.text
    model(X)
    assert state_of(adam)["Step___weight"] == 2.0


def test_training_goes_on_from_a_checkpoint() -> None:
    module, adam, model = train()
    model(X)
    weights, state = (
        copy.deepcopy(module.state_dict()),
        copy.deepcopy(adam.state_dict()),
    )
    model(X)
    expected = module.weight.tolist()
    fresh = Scale()
    fresh.load_state_dict(weights)
    second = optim.Adam(fresh.parameters(), lr=0.125)
    second.load_state_dict(state)
    poptorch.trainingModel(fresh, options(), second)(X)
    assert fresh.weight.tolist() == expected


def test_loaded_state_goes_to_the_device_at_the_next_call(log: Any) -> None:
    _, adam, model = train()
    model(X)
    state = adam.state_dict()
    state["ipu_state"]["Step___weight"] = torch.tensor(41.0)
    adam.load_state_dict(state)
    log.clear()
    model(X)
    assert state_of(adam)["Step___weight"] == 42.0
    backup = log.text.index("Implicit copyWeightsToHost()")
    assert backup < log.text.index("state tensors from host to IPU memory")


def test_loaded_numbers_count_until_settings_change() -> None:
    module, sgd, model = train(optim.SGD, lr=0.5)
    model(X)
    state = sgd.state_dict()
    state["ipu_param"]["scaledLearningRate0___specific___weight"] = torch.tensor(1.0)
    sgd.load_state_dict(state)
    model(X)
    # Gradients are 1/2: steps of 0.25 and 0.5.
    assert module.weight.tolist() == [0.25, 0.25]
    sgd.param_groups[0]["lr"] = 0.25
    model.setOptimizer(sgd)
    model(X)
    assert module.weight.tolist() == [0.125, 0.125]


def test_settings_changed_after_loading_beat_what_was_loaded() -> None:
    module, sgd, model = train(optim.SGD, lr=0.5)
    model(X)
    sgd.load_state_dict(sgd.state_dict())
    sgd.param_groups[0]["lr"] = 1.0
    model.setOptimizer(sgd)
    model(X)
    assert module.weight.tolist() == [0.25, 0.25]


def test_missing_state_stays_and_that_is_said(log: Any) -> None:
    _, adam, model = train()
    model(X)
    state = adam.state_dict()
    del state["ipu_state"]["Step___weight"]
    adam.load_state_dict(state)
    model(X)
    assert "lacks Step___weight" in log.text
    assert state_of(adam)["Step___weight"] == 2.0


def test_state_of_another_model_is_refused() -> None:
    _, adam, model = train()
    model(X)
    state = adam.state_dict()
    state["ipu_state"]["Accl1___weight"] = torch.zeros(3)
    adam.load_state_dict(state)
    with pytest.raises(poptorch.Error, match=r"Accl1___weight has the shape \[3\]"):
        model(X)


def test_state_saved_before_compiling_is_no_state() -> None:
    _, adam, model = train()
    empty = adam.state_dict()
    model(X)
    adam.load_state_dict(empty)
    model(X)
    assert state_of(adam)["Step___weight"] == 2.0


def test_state_survives_detaching_and_destroying(log: Any) -> None:
    _, adam, model = train()
    model(X)
    model.detachFromDevice()
    assert "Writing optimiser state tensors from IPU to host." in log.text
    model(X)
    model.destroy()
    assert state_of(adam)["Step___weight"] == 2.0
    model(X)
    assert state_of(adam)["Step___weight"] == 3.0


def test_torchs_optimisers_show_no_state(log: Any) -> None:
    _, _, model = train(torch.optim.Adam)
    model(X)
    model.detachFromDevice()
    model.attachToDevice()
    assert "optimiser state" not in log.text


def test_a_replaced_optimiser_keeps_a_last_copy() -> None:
    module, adam, model = train()
    model(X)
    model.setOptimizer(optim.Adam(module.parameters(), lr=0.5))
    model(X)
    assert state_of(adam)["Step___weight"] == 1.0
    assert state_of(model._optimizer)["Step___weight"] == 2.0


def test_copies_take_the_newest_state_along() -> None:
    _, adam, model = train()
    model(X)
    adam.state_dict()
    model(X)
    model.setOptimizer(copy.copy(adam))
    model(X)
    assert state_of(model._optimizer)["Step___weight"] == 3.0


def test_settings_go_to_the_device_when_they_change(log: Any) -> None:
    module, _, model = train(optim.SGD)
    model(X)
    assert log.text.count("Updating group 0 optimizer with SGD2") == 1
    sgd = optim.SGD(module.parameters(), lr=0.5)
    log.clear()
    model.setOptimizer(sgd)
    model.setOptimizer(sgd)
    assert "Updating" not in log.text
    sgd.param_groups[0]["lr"] = 0.25
    model.setOptimizer(sgd)
    assert "learningRate=0.25," in log.text
    assert "copyWeightsToHost" not in log.text


def test_settings_changed_while_detached_go_along_with_the_next_call() -> None:
    module, sgd, model = train(optim.SGD, lr=0.5)
    model(X)
    model.detachFromDevice()
    sgd.param_groups[0]["lr"] = 1.0
    model.setOptimizer(sgd)
    model(X)
    assert module.weight.tolist() == [0.25, 0.25]


def test_half_accumulators_need_a_running_mean() -> None:
    running = poptorch.MeanReductionStrategy.Running
    _, adam, model = train(accum_type=torch.float16)
    assert (
        model.options.Training.meanAccumulationAndReplicationReductionStrategy
        is running
    )
    _, adam, model = train()
    model(X)
    adam.accum_type = torch.float16
    with pytest.raises(ValueError, match="is already compiled"):
        model.setOptimizer(adam)
    model(X)


def test_a_refused_optimiser_leaves_the_old_one(log: Any) -> None:
    module, sgd, model = train(optim.SGD)
    model(X)
    with pytest.raises(poptorch.Error, match="momentum"):
        model.setOptimizer(optim.SGD(module.parameters(), lr=0.5, momentum=0.5))
    model(X)
    assert model._optimizer is sgd
    assert module.weight.tolist() == [0.5, 0.5]
