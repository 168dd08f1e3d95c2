"""How long the model of a training step takes: capture to report.

    python benchmarks/modelling.py [--only TEXT] [--report DIR]

BERT-Large over a 4-stage pipeline of a Bow Pod16 with 4 replicas, ResNet-50 on one
chip, 96 layers of BERT-Large over a pipeline of 64 chips and 200 over 8. Nothing is
computed: each step is compiled, planned, simulated and reported, with weights that have
memory but no contents. Prints the time of the whole, by the clock and of the processor,
which other programs disturb less, the time of each part by the clock, the peak memory
of this process so far and what the chips would do.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import popple  # noqa: E402
import poptorch  # noqa: E402
from benchmarks.models import WithLoss, resnet50  # noqa: E402

HIDDEN, HEADS, SEQUENCE, VOCABULARY = 1024, 16, 128, 30_522


class Attention(nn.Module):
    """Self-attention with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.project = nn.Linear(HIDDEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend over the sequence."""
        batch, length, _ = x.shape
        shape = (batch, length, 3, HEADS, HIDDEN // HEADS)
        q, k, v = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.norm(x + self.project(mixed.transpose(1, 2).reshape(x.shape)))


class Layer(nn.Module):
    """An encoder layer."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.up = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.down = nn.Linear(4 * HIDDEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention, then the feed-forward part."""
        x = self.attention(x)
        return self.norm(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    """BERT with a masked-language head, in blocks of layers."""

    def __init__(self, num_layers: int, num_stages: int = 1) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, HIDDEN)
        self.positions = nn.Embedding(SEQUENCE, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(num_layers))
        self.head = nn.Linear(HIDDEN, VOCABULARY)
        for stage in range(1, num_stages):
            first = self.layers[stage * num_layers // num_stages]
            poptorch.BeginBlock(first, f"stage{stage}", ipu_id=stage)

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of predicting every token."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.positions(places))
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


@dataclass(frozen=True)
class Case:
    """A module to train on so many replicas, and a micro-batch of its inputs."""

    make: Callable[[], nn.Module]
    micro_batch: Callable[[int], tuple[torch.Tensor, ...]]
    size: int
    replicas: int = 1
    accumulation: int = 1


def _tokens(count: int) -> tuple[torch.Tensor, ...]:
    ids = torch.zeros(count, SEQUENCE, dtype=torch.int64)
    return ids, ids


def _images(count: int) -> tuple[torch.Tensor, ...]:
    images = torch.zeros(count, 3, 224, 224, dtype=torch.half)
    return images, torch.zeros(count, dtype=torch.int64)


CASES = {
    "BERT-Large, Pod16": Case(lambda: Bert(24, 4), _tokens, 2, 4, 16),
    "ResNet-50": Case(lambda: WithLoss(resnet50()), _images, 4),
    "96 layers, 64 chips": Case(lambda: Bert(96, 64), _tokens, 2, 1, 128),
    "200 layers, 8 chips": Case(lambda: Bert(200, 8), _tokens, 2, 1, 16),
}


def model(case: Case, directory: Path) -> None:
    """Compile and model one training step, and say how long that took."""
    # Memory that nobody writes to takes no room: what is measured is the model's.
    with torch.device("meta"):
        module = case.make().half()
    module = module.to_empty(device="cpu")
    built, processor = time.perf_counter(), time.process_time()
    options = poptorch.Options().replicationFactor(case.replicas)
    options.Training.gradientAccumulation(case.accumulation)
    options.Precision.setPartialsType(torch.half)
    options.enableProfiling(str(directory))
    options.useOfflineIpuTarget()
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-4)
    training = poptorch.trainingModel(module, options, optimizer)
    training.compile(*case.micro_batch(case.size * case.accumulation * case.replicas))
    seconds, processor = time.perf_counter() - built, time.process_time() - processor

    modelled = popple.modelled(training)
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"capture to report       {seconds:6.1f} s")
    print(f"  of the processor      {processor:6.1f} s")
    for part, spent in modelled.seconds.items():
        print(f"  {part:21} {spent:6.1f} s")
    print(f"peak memory             {peak_gib:6.1f} GiB")
    print(f"ops {len(modelled.graph.ops)}, report in {directory}")
    print(popple.report.render_summary(popple.open_report(directory / "training")))


def main() -> None:
    """Model every case that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    parent = arguments.report or Path(tempfile.mkdtemp())
    os.environ.setdefault("POPPLE_TARGET", "bow-pod64")
    for number, (name, case) in enumerate(CASES.items()):
        if arguments.only.lower() in name.lower():
            print(f"== {name}", flush=True)
            model(case, parent / f"case{number}")


if __name__ == "__main__":
    main()
