"""What is refused when a model is compiled or attached, and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from poptorch import Block, Stage
from tests.poptorch.models import Classifier, Scale, batch, options

X = torch.ones(2)


class InBlocks(nn.Module):
    """relu in blocks on the given IPUs."""

    def __init__(self, *ipus: int) -> None:
        super().__init__()
        self.ipus = ipus

    def forward(self, x: Tensor) -> Tensor:
        for number, ipu in enumerate(self.ipus):
            with Block(f"b{number}", ipu_id=ipu):
                x = torch.relu(x) + 1
        return x


def infer(module: nn.Module, **counts: int) -> poptorch.PoplarExecutor:
    return poptorch.inferenceModel(module, options(**counts))


# -- blocks and pipelines


def test_ops_after_a_with_block_must_be_in_a_block() -> None:
    class Outside(InBlocks):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).exp()

    with pytest.raises(poptorch.Error, match=r"No active Block \(test_executor_checks"):
        infer(Outside(0))(X)


def test_data_must_flow_to_later_stages() -> None:
    with pytest.raises(poptorch.Error, match="reads the result of") as error:
        infer(InBlocks(1, 0), d=4)(torch.ones(4))
    assert "test_executor_checks.py:" in error.value.message
    assert "order the blocks" in error.value.message


def test_sharded_data_may_flow_anywhere() -> None:
    opts = options().setExecutionStrategy(poptorch.ShardedExecution())
    model = poptorch.inferenceModel(InBlocks(1, 0), opts)
    assert model(X).tolist() == [3, 3]


def test_a_stage_lies_on_one_ipu() -> None:
    strategy = poptorch.PipelinedExecution(Stage("b0", "b1"), Stage("b2"))
    opts = options(d=4).setExecutionStrategy(strategy)
    model = poptorch.inferenceModel(InBlocks(0, 1, 1), opts)
    with pytest.raises(poptorch.Error, match="A stage runs on one chip"):
        model(torch.ones(4))


def test_a_training_pipeline_needs_2s_minus_1_micro_batches() -> None:
    module = Classifier(num_ipus=4)
    model = poptorch.trainingModel(module, options(g=6))
    with pytest.raises(poptorch.Error, match="4 forward stages has 7 stages") as error:
        model(*batch(6))
    assert "is 6" in error.value.message
    assert "gradientAccumulation(7)" in error.value.message
    poptorch.trainingModel(Classifier(num_ipus=4), options(g=7))(*batch(7))


def test_an_inference_pipeline_needs_a_micro_batch_per_stage() -> None:
    with pytest.raises(poptorch.Error, match="deviceIterations must be greater"):
        infer(InBlocks(0, 1), d=1)(torch.ones(1))
    infer(InBlocks(0, 1), d=2)(torch.ones(2))


@pytest.mark.parametrize(
    ("ipus", "stages"), [((0, 2), 2), ((1,), 2), ((0, 0), 1), ((0, 1, 2), 3)]
)
def test_stages_count_changes_of_ipu(ipus: tuple[int, ...], stages: int) -> None:
    opts = options(d=stages).autoRoundNumIPUs(True)
    poptorch.inferenceModel(InBlocks(*ipus), opts)(torch.ones(stages))
    if stages > 1:
        fewer = options(d=stages - 1).autoRoundNumIPUs(True)
        with pytest.raises(poptorch.Error, match=rf"stages \({stages}\)"):
            poptorch.inferenceModel(InBlocks(*ipus), fewer)(torch.ones(stages - 1))


def test_inference_does_not_accumulate() -> None:
    with pytest.raises(poptorch.Error, match="deviceIterations"):
        infer(Scale(), g=2)


# -- losses


def test_a_training_model_needs_a_loss() -> None:
    module = nn.Linear(2, 2)
    with pytest.raises(poptorch.Error, match="Couldn't find a loss in graph"):
        poptorch.trainingModel(module, options())(torch.ones(1, 2))


def test_two_independent_losses_are_refused() -> None:
    class Two(Scale):
        def forward(self, x: Tensor) -> Any:
            return F.mse_loss(self.weight, x), F.l1_loss(self.weight, x)

    with pytest.raises(poptorch.Error, match="Multiple independent losses") as error:
        poptorch.trainingModel(Two(), options())(X)
    assert "identity_loss" in error.value.message


@pytest.mark.parametrize(
    ("reduction", "gradient"), [("sum", 1.0), ("mean", 0.5), ("none", 1.0)]
)
def test_identity_loss_reduces_and_marks(reduction: str, gradient: float) -> None:
    class Marked(Scale):
        def forward(self, x: Tensor) -> Tensor:
            return poptorch.identity_loss(x * self.weight, reduction)

    module = Marked()
    sgd = poptorch.optim.SGD(module.parameters(), lr=1.0)
    loss = poptorch.trainingModel(module, options(), sgd)(X)
    assert loss.shape == (X.shape if reduction == "none" else ())
    assert module.weight.tolist() == [1 - gradient, 1 - gradient]
    assert torch.equal(poptorch.identity_loss(X, "none"), X)  # on the CPU too


def test_identity_loss_is_picky() -> None:
    with pytest.raises(AssertionError, match="Unsupported reduction type 'max'"):
        poptorch.identity_loss(X, "max")
    with pytest.raises(poptorch.Error, match="takes a tensor"):
        poptorch.identity_loss(1.0, "sum")  # type: ignore[arg-type]


def test_losses_join_in_an_identity_loss() -> None:
    class Joined(Scale):
        def forward(self, x: Tensor) -> Tensor:
            total = F.mse_loss(self.weight, 0 * x) + F.l1_loss(self.weight, 0 * x)
            return poptorch.identity_loss(total, "none")

    assert poptorch.trainingModel(Joined(), options())(X).item() == 2.0


# -- buffers


def test_replicas_must_not_change_a_shared_buffer() -> None:
    class Counts(Scale):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(2))

        def forward(self, x: Tensor) -> Tensor:
            self.get_buffer("seen").add_(1.0)
            return super().forward(x)

    x = torch.rand(4, 2)
    with pytest.raises(poptorch.Error, match="Buffer seen is changed") as error:
        infer(Counts(), r=2)(x)
    assert "broadcastBuffers(False)" in error.value.message
    opts = options(r=2).broadcastBuffers(False)
    poptorch.inferenceModel(Counts(), opts)(x)


def test_every_replica_has_statistics_of_its_own() -> None:
    module = nn.BatchNorm1d(1)
    sgd = torch.optim.SGD(module.parameters(), lr=0.0)

    class Training(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = module

        def forward(self, x: Tensor) -> Tensor:
            return poptorch.identity_loss(self.norm(x), "mean")

    trained = poptorch.trainingModel(Training(), options(r=2), sgd)
    trained(torch.tensor([[1.0], [3.0], [10.0], [30.0]]))
    trained.copyWeightsToHost()
    # The host has those of the first replica, which saw 1 and 3: a tenth of their mean.
    assert module.running_mean is not None
    assert module.running_mean.tolist() == pytest.approx([0.2])


def test_replicas_may_read_shared_buffers() -> None:
    infer(nn.BatchNorm1d(3).eval(), r=2)(torch.rand(4, 3))
    same = options(r=2).inputReplicaGrouping(2, poptorch.CommGroupType.Consecutive)
    poptorch.inferenceModel(nn.BatchNorm1d(3), same)(torch.rand(4, 3))


def test_assigning_a_buffer_is_refused() -> None:
    class Assigns(Scale):
        def forward(self, x: Tensor) -> Tensor:
            self.seen = self.seen + x
            return super().forward(x)

    with pytest.raises(poptorch.Error, match="forward assigns or deletes seen"):
        infer(Assigns())(X)


# -- devices


def test_an_ipu_id_that_does_not_exist_names_those_that_do() -> None:
    opts = options().useIpuId(99)
    with pytest.raises(poptorch.Error, match="There is no device 99") as error:
        poptorch.inferenceModel(Scale(), opts)(X)
    assert "0 to 30" in error.value.message
    assert "POPPLE_TARGET" in error.value.message


def test_an_ipu_id_of_the_wrong_size_names_the_right_ones() -> None:
    opts = options(d=2).useIpuId(0)
    with pytest.raises(poptorch.Error, match="device 0 has 1 IPUs, the model needs 2"):
        poptorch.inferenceModel(InBlocks(0, 1), opts)(torch.ones(2))


def test_an_ipu_that_is_held_cannot_be_held_twice() -> None:
    first = poptorch.inferenceModel(Scale(), options().useIpuId(3))
    second = poptorch.inferenceModel(Scale(), options().useIpuId(3))
    first(X)
    with pytest.raises(poptorch.Error, match="Failed to acquire 1 IPU"):
        second(X)
    first.detachFromDevice()
    assert second(X).item() == 1


def test_too_many_ipus() -> None:
    with pytest.raises(poptorch.Error, match=r"Too many IPUs requested \(128\)\. Ex"):
        infer(Scale(), r=128)(torch.ones(256))


def test_more_ipus_than_the_pod_has() -> None:
    with pytest.raises(poptorch.Error, match="No device of bow-pod16 has 32") as error:
        infer(Scale(), r=32)(torch.ones(64))
    assert "POPPLE_TARGET" in error.value.message


def test_ipus_are_held_in_powers_of_two() -> None:
    with pytest.raises(poptorch.Error, match="needs 3 IPUs") as error:
        infer(InBlocks(0, 1, 2), d=3)(torch.ones(3))
    assert "autoRoundNumIPUs(True)" in error.value.message


def test_the_ipu_model_holds_nothing() -> None:
    models = [
        poptorch.inferenceModel(InBlocks(0, 1, 2), options(d=3).useIpuModel(True))
        for _ in range(20)
    ]
    for model in models:
        model(torch.ones(3))
    assert all(model.isAttachedToDevice() for model in models)


# -- arithmetic


def test_floating_point_exceptions_stop_the_call() -> None:
    opts = options()
    opts.Precision.enableFloatingPointExceptions(True)
    model = poptorch.inferenceModel(nn.Threshold(0.0, float("inf")), opts)
    assert model(X).tolist() == [1, 1]

    class Divides(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return 1 / x

    opts = opts.clone()
    model = poptorch.inferenceModel(Divides(), opts)
    assert model(X).tolist() == [1, 1]
    with pytest.raises(poptorch.Error, match=r"exception: .*reciprocal"):
        model(0 * X)
    plain = infer(Divides())
    assert plain(0 * X).tolist() == [float("inf")] * 2
