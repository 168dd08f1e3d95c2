"""Bad input is refused in words that name the remedy, and the model lives on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import Classifier, batch, options
from tests.sources import ROOT, SRC

X, Y = batch(4)
AGAIN = r"Pass inputs of the same structure, or call destroy\(\)"


def training(module: nn.Module | None = None, **rest: Any) -> Any:
    """A training model of two device iterations."""
    return poptorch.trainingModel(module or Classifier(), options(d=2, **rest))


def assert_usable(model: Any) -> None:
    """A good call still trains."""
    before = model.model.out.weight.detach().clone()
    _, loss = model(X, Y)
    assert loss.isfinite().all()
    model.copyWeightsToHost()
    assert not torch.equal(model.model.out.weight, before)


@pytest.mark.parametrize("size", [1, 3])
def test_a_wrong_batch_at_the_first_call(size: int) -> None:
    model = training()
    message = r"not a multiple of 2 = deviceIterations \(2\).*poptorch\.DataLoader"
    with pytest.raises(AssertionError, match=message):
        model(X[:size], Y[:size])
    assert_usable(model)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[:2], Y[:2], r"Shape mismatch for x: expected torch.Size\(\[4, 8\]\)"),
        (torch.ones(4, 9), Y, r"but got torch.Size\(\[4, 9\]\)"),
        (X, Y[:2], "Shape mismatch for y"),
        (X.half(), Y, "Data type mismatch for x: .*float32 but got torch.float16"),
        (X.numpy(), Y, "Type mismatch for x: .*Tensor.*ndarray"),
        (X, None, "Type mismatch for y: .*NoneType"),
    ],
)
def test_changed_input_of_a_compiled_model(x: Any, y: Any, message: str) -> None:
    model = training()
    model(X, Y)
    with pytest.raises(poptorch.Error, match=rf"(?s){message}.*{AGAIN}"):
        model(x, y)
    assert_usable(model)


def test_a_shape_the_model_cannot_take_names_the_users_line() -> None:
    model = training()
    with pytest.raises(RuntimeError, match="same reduction dim") as error:
        model(torch.ones(4, 9), Y)
    assert any("models.py" in str(entry.path) for entry in error.traceback)
    assert_usable(model)


def test_too_many_arguments() -> None:
    model = training()
    with pytest.raises(AssertionError, match=r"Too many arguments.*\['x', 'y'\]"):
        model(X, Y, Y)
    assert_usable(model)


def test_labels_out_of_range() -> None:
    model = training()
    model(X, Y)
    with pytest.raises(IndexError, match="Target 9 is out of bounds"):
        model(X, torch.full((4,), 9))
    assert_usable(model)


def test_a_nan_stays_where_it_is() -> None:
    model = poptorch.inferenceModel(nn.Linear(8, 2), options(d=2))
    bad = X.clone()
    bad[1] = torch.nan
    assert model(bad).isnan().any(dim=1).tolist() == [False, True, False, False]
    assert model(X).isfinite().all()


class Divides(Classifier):
    """Divides by the first number of every sample."""

    def forward(self, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, Any]:
        return super().forward(x / x[:, :1], y)


def test_a_nan_that_is_made_stops_the_call_if_wanted() -> None:
    opts = options()
    opts.Precision.enableFloatingPointExceptions(True)
    model: Any = poptorch.trainingModel(Divides(), opts)
    model(X, Y)
    model.copyWeightsToHost()
    before = model.model.out.weight.detach().clone()
    with pytest.raises(poptorch.Error, match=r"(?s)div.*made a NaN.*switch"):
        model(0 * X, Y)
    model.copyWeightsToHost()
    assert torch.equal(model.model.out.weight, before)
    assert_usable(model)


class Faulty(Classifier):
    """Right or wrong, as `faults` says; models see changes of a set."""

    def __init__(self, *faults: str) -> None:
        super().__init__()
        self.faults = set(faults)

    def forward(self, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, Any]:
        if "host tensor" in self.faults:
            x = x + torch.FloatTensor([1.0])
        return super().forward(x, None if "no loss" in self.faults else y)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "host tensor",
            r"got tensor\(device=cpu, shape=\[1\].*Make it with",
        ),
        ("no loss", r"find a loss.*poptorch\.identity_loss"),
    ],
)
def test_a_model_that_cannot_be_compiled(fault: str, message: str) -> None:
    module = Faulty(fault)
    model = training(module)
    with pytest.raises(poptorch.Error, match=message):
        model(X, Y)
    module.faults.clear()
    assert_usable(model)


def test_an_optimizer_of_another_kind() -> None:
    model = training()
    model(X, Y)
    adam = poptorch.optim.Adam(model.parameters())
    with pytest.raises(poptorch.Error, match=r"SGD .* cannot become Adam.*destroy\(\)"):
        model.setOptimizer(adam)
    assert_usable(model)


def test_an_optimizer_that_does_not_exist() -> None:
    module = Classifier()
    odd = torch.optim.Adagrad(module.parameters())
    with pytest.raises(AssertionError, match="Adagrad: use SGD, Adam"):
        poptorch.trainingModel(module, options(), odd)
    assert_usable(training(Classifier()))


def test_an_optimizer_of_another_model() -> None:
    module, other = Classifier(), Classifier()
    mine = poptorch.optim.SGD(module.parameters(), lr=0.1)
    theirs = poptorch.optim.SGD(other.parameters(), lr=0.1)
    message = r"None of the optimizer's parameters .*parameters\(\) of the model"
    model = poptorch.trainingModel(module, options(d=2), theirs)
    with pytest.raises(poptorch.Error, match=message):
        model(X, Y)
    model.setOptimizer(mine)
    assert_usable(model)
    with pytest.raises(poptorch.Error, match=message):
        model.setOptimizer(theirs)
    assert_usable(model)


def test_an_optimizer_with_other_weights_among_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = Classifier()
    stray = nn.Parameter(torch.zeros(1))
    optimizer = poptorch.optim.SGD([*module.parameters(), stray], lr=0.1)
    assert_usable(poptorch.trainingModel(module, options(d=2), optimizer))
    assert "1 of the optimizer's 11 parameters do not belong" in caplog.text


WORKER_DIES = """
import sys, torch, poptorch
from tests.poptorch.datasets import Deadly
from tests.poptorch.models import options
if __name__ == "__main__":
    model = poptorch.inferenceModel(torch.nn.ReLU(), options())
    mode = poptorch.DataLoaderMode[sys.argv[1]]
    data = poptorch.DataLoader(
        options(), Deadly(8, last=6), batch_size=2, num_workers=1, mode=mode
    )
    try:
        for x in data:
            model(x)
    except (RuntimeError, AssertionError) as error:
        print(error)
    print(model(torch.tensor([[-1.0, 1.0]] * 2)).tolist())
"""


@pytest.mark.parametrize("mode", ["Sync", "Async"])
def test_a_worker_that_dies(mode: str, tmp_path: Path) -> None:
    # In a process of its own: torch reports the death by a signal, at any time.
    script = tmp_path / "script.py"
    script.write_text(WORKER_DIES)
    path = os.pathsep.join([str(ROOT), str(SRC)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), mode],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    *message, result = done.stdout.splitlines()
    assert result == "[[0.0, 1.0], [0.0, 1.0]]", done.stderr
    assert "num_workers=0" in " ".join(message)


def test_numpy_instead_of_tensors_at_the_first_call() -> None:
    model: Any = poptorch.inferenceModel(nn.ReLU(), options())
    with pytest.raises(TypeError, match=r"must be Tensor, not numpy\.ndarray"):
        model(np.ones((2, 2)))
    assert model(torch.ones(2)).tolist() == [1, 1]
