"""A trainer with one executor per stage, all of one module, as Lightning has them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.programs.poptorch.plain import assert_equal_state, batch, made, quiet, step


class Task(nn.Module):
    """A network whose forward depends on the stage."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.stage = "train"

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        scores = self.net(x)
        if self.stage == "train":
            assert y is not None
            return F.cross_entropy(scores, y)
        return scores.argmax(-1)


def test_stages_share_weights() -> None:
    net, twin = made()
    task = Task(net)
    sgd = poptorch.optim.SGD(net.parameters(), lr=0.1)
    training = poptorch.trainingModel(task, quiet(), sgd)
    plain = torch.optim.SGD(twin.parameters(), lr=0.1)
    validation = poptorch.inferenceModel(training, quiet())
    for epoch in range(2):
        task.stage = "train"
        task.train()
        training(*batch(seed=epoch))
        step(twin.train(), plain, *batch(seed=epoch))
        training.detachFromDevice()
        task.stage = "predict"
        task.eval()
        vars(validation._model)["stage"] = "predict"
        x = batch(seed=7)[0]
        assert validation(x).tolist() == twin.eval()(x).argmax(-1).tolist()
        validation.detachFromDevice()
    assert_equal_state(net, twin)


def test_the_learning_rate_in_use_can_be_seen() -> None:
    net, twin = made()
    task = Task(net)
    sgd = poptorch.optim.SGD(net.parameters(), lr=0.1)
    model = poptorch.trainingModel(task, quiet(), sgd)
    plain = torch.optim.SGD(twin.parameters(), lr=0.1)
    seen = []
    for epoch in range(3):
        model(*batch(seed=epoch))
        plain.param_groups[0]["lr"] = 0.1 * 0.5**epoch
        step(twin, plain, *batch(seed=epoch))
        seen.append(model._dict_optimizer["groups"][0]["learningRate"][0])
        sgd.param_groups[0]["lr"] *= 0.5
        model.setOptimizer(sgd)
    assert seen == [0.1, 0.05, 0.025]
    assert_equal_state(net, twin)


def test_options_are_read_back_as_a_dict() -> None:
    model = poptorch.inferenceModel(nn.Linear(2, 2), quiet().deviceIterations(20))
    assert model._options.toDict()["device_iterations"] == 20
