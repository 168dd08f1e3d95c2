"""Jobs of several instances: results are those of one process with all replicas."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.distributed.jobs import POPRUN, instances, poprun

JOB = Path(__file__).with_name("training_job.py")


def train(folder: Path, count: int, *features: str) -> list[dict[str, Any]]:
    """What the instances of a job with four replicas write."""
    folder.mkdir()
    launcher = [*POPRUN, *instances(count, 4)] if count > 1 else []
    words = [*launcher, sys.executable, str(JOB), str(folder), *features]
    subprocess.run(words, check=True, capture_output=True, cwd=folder)
    return [json.loads((folder / f"{n}.json").read_text()) for n in range(count)]


@pytest.mark.slow
def test_two_instances_train_as_one_process(tmp_path: Path) -> None:
    # Random numbers belong to replicas, and so do groups of weights.
    features = ("dropout", "groups")
    (alone,) = train(tmp_path / "alone", 1, *features)
    first, second = train(tmp_path / "two", 2, *features)
    assert first["weights"] == second["weights"]
    for name, weights in alone["weights"].items():
        np.testing.assert_allclose(first["weights"][name], weights, rtol=0, atol=1e-6)
    # Outputs stay local: each instance has the losses of its own two replicas.
    joined = np.concatenate([first["losses"], second["losses"]], axis=1)
    np.testing.assert_allclose(joined, alone["losses"], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_more_instances_cost_and_train_the_same(tmp_path: Path) -> None:
    (alone,) = train(tmp_path / "alone", 1)
    four = train(tmp_path / "four", 4)
    assert all(each["weights"] == four[0]["weights"] for each in four)
    for name, weights in alone["weights"].items():
        np.testing.assert_allclose(four[0]["weights"][name], weights, rtol=0, atol=1e-6)
    # The modelled program has all replicas, wherever their processes run.
    assert {each["cycles"] for each in four} == {alone["cycles"]}


LOADER = """
import popdist, popdist.poptorch, poptorch, torch
popdist.init()
opts = popdist.poptorch.Options()
opts.randomSeed(1)
data = torch.utils.data.TensorDataset(torch.arange(16))
loader = poptorch.DataLoader(opts, data, batch_size=2, shuffle=True)
print(sorted(int(x) for (batch,) in loader for x in batch))
"""


def test_instances_read_their_own_part_of_the_data() -> None:
    done = poprun(LOADER, *instances(2, 4))
    assert done.returncode == 0, done.stderr
    parts = [json.loads(line.partition(":")[2]) for line in done.stdout.splitlines()]
    assert sorted(parts[0] + parts[1]) == list(range(16))
    assert len(parts[0]) == 8


UNEQUAL = """
import poptorch, torch
from torch import nn
opts = poptorch.Options().showCompilationProgressBar(False)
torch.manual_seed(opts.Distributed.processId)
class Model(nn.Linear):
    def forward(self, x):
        out = super().forward(x)
        return out, poptorch.identity_loss(out, "mean")
model = Model(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
poptorch.trainingModel(model, opts, optimizer=optimizer)(torch.ones(2, 2))
"""


def test_unequal_weights_are_noticed() -> None:
    # Plain options read Open MPI's variables, so they know the other process, too.
    done = poprun(UNEQUAL, *instances(2))
    assert done.returncode == 0, done.stderr
    assert "begin with different weights" in done.stderr


def test_other_launchers_name_a_meeting_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    done = subprocess.run(
        [sys.executable, "-c", UNEQUAL], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "Start the program with poprun, or set MASTER_ADDR" in done.stderr
