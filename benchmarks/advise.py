"""Whether `popple advise` helps: models that do not fit, and its first advice followed.

    python benchmarks/advise.py [--only TEXT]

BERT-Large on one IPU and on four, GPT-2 medium on four, ResNet-50 with batch 64. For
each: seconds of this process's CPU time, the advice, and what the model says of the
program with the first advice followed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import popple  # noqa: E402
import poptorch  # noqa: E402
from benchmarks.modelling import Bert  # noqa: E402
from benchmarks.models import WithLoss, resnet50  # noqa: E402
from popple.advice import Advice, render_advice  # noqa: E402


class Gpt(nn.Module):
    """GPT-2 medium with a tied head, its layers over so many chips."""

    def __init__(self, num_stages: int, length: int = 512) -> None:
        super().__init__()
        width, num_layers, vocabulary = 1024, 24, 50_257
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.layers = nn.ModuleList(GptLayer(width) for _ in range(num_layers))
        self.norm = nn.LayerNorm(width)
        for stage in range(1, num_stages):
            first = self.layers[stage * num_layers // num_stages]
            poptorch.BeginBlock(first, f"stage{stage}", ipu_id=stage)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The loss of predicting the next token everywhere."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.words(ids) + self.positions(places)
        for layer in self.layers:
            x = layer(x)
        with poptorch.Block("head", ipu_id=0):
            scores = self.norm(x) @ self.words.weight.t()
            return F.cross_entropy(scores.flatten(0, 1), labels.flatten())


class GptLayer(nn.Module):
    """Masked attention and a feed-forward part, normalised first."""

    def __init__(self, width: int, heads: int = 16) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The sequence after this layer."""
        split = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


@dataclass(frozen=True)
class Case:
    """A module to train, its micro-batch, and how often it is repeated."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[Tensor, Tensor]]
    size: int
    replicas: int = 1
    accumulation: int = 1


def _tokens(length: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda count: (torch.zeros(count, length, dtype=torch.int64),) * 2


def _images(count: int) -> tuple[Tensor, Tensor]:
    images = torch.zeros(count, 3, 224, 224, dtype=torch.half)
    return images, torch.zeros(count, dtype=torch.int64)


CASES = {
    "BERT-Large, 1 IPU": Case(lambda: Bert(24, 1), _tokens(128), 2),
    "BERT-Large, 4 IPUs": Case(lambda: Bert(24, 4), _tokens(128), 2, 4, 16),
    "GPT-2 medium, 4 IPUs": Case(lambda: Gpt(4), _tokens(512), 1, 1, 16),
    "ResNet-50, batch 64": Case(lambda: WithLoss(resnet50()), _images, 64),
}


def compiled(case: Case) -> poptorch.PoplarExecutor:
    """The training step of a case, compiled and not run."""
    module = case.make().half()
    options = poptorch.Options().replicationFactor(case.replicas)
    options.showCompilationProgressBar(False).useOfflineIpuTarget()
    options.Training.gradientAccumulation(case.accumulation)
    # A head beside the table it is tied to runs in a stage of its own, the last one.
    in_order = poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement)
    options.setExecutionStrategy(in_order)
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-4)
    training = poptorch.trainingModel(module, options, optimizer)
    training.compile(*case.inputs(case.size * case.accumulation * case.replicas))
    return training


def follow(advice: Advice) -> str:
    """What the model says of the program as the first advice changes it."""
    first = advice.first
    if first is None:
        return "there is no advice"
    changed = first.case
    modelled = popple.model_graph(changed.graph, changed.target, changed.options)
    simulation = modelled.simulation
    word = "fits" if simulation.fits else "does not fit"
    return f"{word}, {simulation.peak_tile_bytes:,} bytes on the fullest tile"


def main() -> None:
    """Advise on every case that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    os.environ.setdefault("POPPLE_TARGET", "bow-pod64")
    for name, case in CASES.items():
        if arguments.only.lower() not in name.lower():
            continue
        print(f"== {name}", flush=True)
        start = time.process_time()
        advice = popple.advise(compiled(case))
        spent = time.process_time() - start
        print(render_advice(advice))
        print(f"\n{spent:.1f} s of CPU time; followed: {follow(advice)}\n", flush=True)


if __name__ == "__main__":
    main()
