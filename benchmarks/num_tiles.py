"""Does the time to model a program depend on the number of tiles?

    python benchmarks/num_tiles.py [--rounds 5]

Models one training step of a small CNN and of a 2-layer transformer on a Bow chip and
on one with ten times the tiles, in turns, and prints CPU times side by side. Writing
the report is apart: its format has a row for every tile.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
from torch import nn  # noqa: E402

import poptorch  # noqa: E402
from popple.options import ModelOptions  # noqa: E402
from popple.pipeline import Modelled, model_graph, write_report  # noqa: E402
from popple.plan.conv.search import find_choice  # noqa: E402
from popple.target import Target, load_target  # noqa: E402

MANY_TILES = 'base = "bow"\nname = "bow-14720"\nnum_tiles = 14720\n'


class Cnn(nn.Module):
    """Two convolutions and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.Conv2d(64, 128, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(128, 100),
        )
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch."""
        return self.loss(self.layers(x), labels)


class Transformer(nn.Module):
    """Encoder layers and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(256, 100)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch."""
        return self.loss(self.head(self.encoder(x).mean(1)), labels)


def captured(module: nn.Module, x: torch.Tensor) -> Modelled:
    """The module's training step, modelled once."""
    options = poptorch.Options().showCompilationProgressBar(False).useIpuModel(True)
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-3)
    training = poptorch.trainingModel(module, options, optimizer)
    training.compile(x, torch.zeros(len(x), dtype=torch.int64))
    return training.__popple__()


def seconds_to_model(modelled: Modelled, target: Target) -> tuple[float, float]:
    """CPU time to model with nothing remembered, and to write it down."""
    find_choice.cache_clear()
    gc.collect()
    start = time.process_time()
    again = model_graph(modelled.graph, target, ModelOptions())
    done = time.process_time()
    with tempfile.TemporaryDirectory() as directory:
        write_report(again, Path(directory), framework="", framework_version="")
    return done - start, time.process_time() - done


def main() -> None:
    """Print a table of times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "many.toml"
        file.write_text(MANY_TILES, encoding="utf-8")
        targets = [load_target("bow"), load_target(str(file))]
    models = {
        "cnn": captured(Cnn(), torch.zeros(16, 3, 32, 32)),
        "transformer": captured(Transformer(), torch.zeros(8, 64, 256)),
    }
    print(f"{'':24} {'1472 tiles':>11} {'14720 tiles':>11} {'ratio':>6}")
    for name, modelled in models.items():
        times = [
            [seconds_to_model(modelled, t) for t in targets] for _ in range(rounds)
        ]
        for part, label in enumerate(("model", "write the report")):
            few, many = (
                statistics.median(each[index][part] for each in times)
                for index in range(2)
            )
            title = f"{name}, {label}"
            print(f"{title:24} {few:9.3f} s {many:9.3f} s {many / few:6.2f}")


if __name__ == "__main__":
    main()
