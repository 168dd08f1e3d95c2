"""How long the model of a BERT-Large training step takes: capture to report.

    python benchmarks/bert_large.py [--layers 24] [--micro-batch 2] [--report DIR]

BERT-Large, sequence 128, split over a 4-stage pipeline of a Bow Pod16 with 4 replicas.
Nothing is computed: the step is compiled, planned, simulated and reported. Prints the
time of each part, the peak memory of this process and what the chips would do.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import popple  # noqa: E402
import poptorch  # noqa: E402

HIDDEN, HEADS, SEQUENCE, VOCABULARY = 1024, 16, 128, 30_522
NUM_STAGES = 4


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

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, HIDDEN)
        self.positions = nn.Embedding(SEQUENCE, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(num_layers))
        self.head = nn.Linear(HIDDEN, VOCABULARY)
        for stage in range(1, NUM_STAGES):
            first = self.layers[stage * num_layers // NUM_STAGES]
            poptorch.BeginBlock(first, f"stage{stage}", ipu_id=stage)

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of predicting every token."""
        places = torch.arange(SEQUENCE, device=ids.device)
        x = self.norm(self.words(ids) + self.positions(places))
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


def main() -> None:
    """Compile and model one training step, and say how long that took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--micro-batch", type=int, default=2)
    parser.add_argument("--accumulation", type=int, default=16)
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    directory = arguments.report or Path(tempfile.mkdtemp())

    start = time.perf_counter()
    model = Bert(arguments.layers).half()
    built = time.perf_counter()
    options = poptorch.Options().replicationFactor(4)
    options.Training.gradientAccumulation(arguments.accumulation)
    options.Precision.setPartialsType(torch.half)
    options.enableProfiling(str(directory))
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=1e-4)
    training = poptorch.trainingModel(model, options, optimizer)
    samples = arguments.micro_batch * arguments.accumulation * 4
    ids = torch.zeros(samples, SEQUENCE, dtype=torch.int64)
    training.compile(ids, ids)
    done = time.perf_counter()

    modelled = popple.modelled(training)
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"build the module        {built - start:6.1f} s")
    print(f"capture to report       {done - built:6.1f} s")
    for part, seconds in modelled.seconds.items():
        print(f"  {part:21} {seconds:6.1f} s")
    print(f"peak memory             {peak_gib:6.1f} GiB")
    print(f"ops {len(modelled.graph.ops)}, report in {directory}")
    print(popple.report.render_summary(popple.open_report(directory / "training")))
    training.detachFromDevice()


if __name__ == "__main__":
    main()
