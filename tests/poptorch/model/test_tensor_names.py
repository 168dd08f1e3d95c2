"""The names of tensors, and the places of ops in the log."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options


class Layers(nn.Module):
    """Two layers and a distance, in blocks on `ipus`."""

    def __init__(self, *ipus: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.second = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
        self._ipus = ipus

    def forward(self, x: Tensor, y: Tensor) -> Any:
        self.begin(0)
        x = self.first(x) * 2 * 3
        self.begin(1)
        x = self.second(x)
        return x, F.l1_loss(x, y)

    def begin(self, index: int) -> None:
        if self._ipus:
            poptorch.Block.start(f"B{index}", ipu_id=self._ipus[index])


ARGUMENTS = (torch.rand(4, 4), torch.rand(4, 2))


def train(module: nn.Module, opts: poptorch.Options) -> poptorch.PoplarExecutor:
    model = poptorch.trainingModel(module, opts)
    model.compile(*ARGUMENTS)
    return model


def test_inputs_weights_ops_gradients_and_updates_have_names() -> None:
    names = train(Layers(), options()).getTensorNames()
    expected = {
        "input",
        "input/1",
        "first.weight",
        "first/Add:0",
        "Mul:0",
        "Mul:0/1",
        "second/0/Add:0",
        "second/1/Relu:0",
        "Sub:0",
        "L1:0",
        "IdentityLoss:0",
        "Gradient___second.0.bias",
        "UpdatedVar___first.weight",
    }
    assert expected <= {*names}
    assert len(names) == len({*names})


def test_scopes_can_be_left_out() -> None:
    names = train(Layers(), options().disableModuleNamescope()).getTensorNames()
    assert {"Add:0", "Add:0/1", "Relu:0"} <= {*names}


def test_the_optimisers_numbers_have_names() -> None:
    module = Layers()
    sgd = poptorch.optim.SGD(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, options(), sgd)
    model.compile(*ARGUMENTS)
    names = model.getTensorNames()
    assert "scaledLearningRate0___specific___first.weight" in names


def test_names_need_a_compiled_model() -> None:
    with pytest.raises(AssertionError, match="must be compiled first"):
        poptorch.inferenceModel(Layers(), options()).getTensorNames()


def placement(
    module: nn.Module, opts: poptorch.Options, caplog: pytest.LogCaptureFixture
) -> list[str]:
    caplog.set_level("DEBUG", logger="poptorch::python")
    poptorch.inferenceModel(module, opts).compile(*ARGUMENTS)
    return caplog.messages


def test_a_pipeline_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    opts = options(d=2)
    lines = placement(Layers(0, 1), opts, caplog)
    assert "enablePipelining set to value 1" in lines
    place = "mode(Pipelined), ipu(0), stage(0)"
    assert f"first/MatMul:0 [float32(2, 3), {place}]" in lines
    place = "mode(Pipelined), ipu(1), stage(1)"
    assert f"second/1/Relu:0 [float32(2, 2), {place}]" in lines


def test_one_ipu_is_no_pipeline(caplog: pytest.LogCaptureFixture) -> None:
    assert "enablePipelining set to value 0" in placement(Layers(), options(), caplog)


def test_shards_have_no_stage(caplog: pytest.LogCaptureFixture) -> None:
    opts = options().setExecutionStrategy(poptorch.ShardedExecution())
    lines = placement(Layers(0, 1), opts, caplog)
    assert "second/1/Relu:0 [float32(4, 2), mode(Sharded), ipu(1)]" in lines


@pytest.mark.parametrize(
    ("liveness", "phases", "last"),
    # Phases of the user x stride; three more before the backward pass if tensors leave.
    [
        (poptorch.Liveness.AlwaysLive, 2, 1),
        (poptorch.Liveness.OffChipAfterFwd, 5, 1),
        (poptorch.Liveness.OffChipAfterFwdNoOverlap, 6, 2),
        (poptorch.Liveness.OffChipAfterEachPhase, 8, 4),
    ],
)
def test_phases_leave_room_for_transfers(
    liveness: poptorch.Liveness,
    phases: int,
    last: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    strategy = poptorch.SerialPhasedExecution("B0", "B1").setTensorsLiveness(liveness)
    opts = options().setExecutionStrategy(strategy)
    lines = placement(Layers(0, 0), opts, caplog)
    assert f"executionPhaseSettings.phases set to value {phases}" in lines
    assert "executionPhaseSettings.stages set to value 1" in lines
    assert "location_weight set to value useOnChipStorage(False)" in lines
    place = f"mode(Phased), ipu(0), phase({last})"
    assert f"second/1/Relu:0 [float32(4, 2), {place}]" in lines
