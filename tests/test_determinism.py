"""Two runs of one program give the same program for the machine, byte by byte.

Each run is a process of its own with another seed for Python's hashes, so that an order
taken from a set, a hash or an address would show.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"

TORCH = """
import poptorch, torch
import popple
from popple.program import render_program

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inward = torch.nn.Conv2d(3, 16, 3)
        self.norm = torch.nn.BatchNorm2d(16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.table = torch.nn.Embedding(50, 16)
        self.outward = torch.nn.Linear(16, 10)

    def forward(self, image, words, labels):
        with poptorch.Block("0", ipu_id=0):
            x = self.norm(self.inward(image)).relu().flatten(2).transpose(1, 2)
        with poptorch.Block("1", ipu_id=1):
            x = self.layer(torch.cat([x, self.table(words)], 1))
            x = self.outward(x.mean(1))
            return torch.nn.functional.cross_entropy(x, labels)

options = poptorch.Options()
options.replicationFactor(2).deviceIterations(2).broadcastBuffers(False)
options.Training.gradientAccumulation(4)
options.setExecutionStrategy(poptorch.PipelinedExecution())
model = Network()
optimizer = poptorch.optim.AdamW(model.parameters())
training = poptorch.trainingModel(model, options, optimizer)
count = 32
training.compile(
    torch.zeros(count, 3, 8, 8),
    torch.zeros(count, 6, dtype=torch.int64),
    torch.zeros(count, dtype=torch.int64),
)
print(render_program(popple.modelled(training).program))
"""

KERAS = """
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
import popple
from popple.program import render_program

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
with ipu.ipu_strategy.IPUStrategyV1().scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(8, 3, activation="relu", input_shape=(8, 8, 1)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(16, activation="tanh"),
        tf.keras.layers.Dense(4),
    ])
    model.compile("adam", tf.keras.losses.MeanSquaredError(), steps_per_execution=4)
    model.fit(np.zeros((16, 8, 8, 1), "f"), np.zeros((16, 4), "f"), batch_size=4)
    print(render_program(popple.modelled(model).program))
"""


@pytest.mark.parametrize("source", [TORCH, KERAS], ids=["torch", "keras"])
def test_two_runs_give_byte_equal_programs(source: str) -> None:
    first, second = (_program_text(source, seed) for seed in ("1", "2"))
    assert first == second
    assert len(first) > 10_000


def _program_text(source: str, hash_seed: str) -> bytes:
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCES),
        "PYTHONHASHSEED": hash_seed,
    }
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout[done.stdout.index(b"program ") :]
