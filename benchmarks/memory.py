"""How much memory PopTorch programs take: against plain PyTorch, and over time.

    python benchmarks/memory.py [--batch 16] [--image 224] [--steps 2000] [--half]

Each line is a program of its own, so that peaks do not mix. The first two train
ResNet-50 for three steps, in plain PyTorch and as a PopTorch model: peak memory of the
process. The third trains a small CNN for many steps: what the process has grown by
since its 200th step. With `--half` models and data are in half precision, which plain
PyTorch takes minutes for: choose smaller images.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
from torch import nn  # noqa: E402

from benchmarks.models import WithLoss, mnist_cnn, resnet50  # noqa: E402

MEBI = 2**20
NUM_STEPS = 3
NUM_SETTLING = 200


def plain_step(
    module: nn.Module, batch: tuple[torch.Tensor, ...]
) -> Callable[[], object]:
    """A training step in plain PyTorch."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)

    def step() -> object:
        optimizer.zero_grad()
        loss = module(*batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def popple_step(
    module: nn.Module, batch: tuple[torch.Tensor, ...]
) -> Callable[[], object]:
    """The same step as a PopTorch training model."""
    import poptorch

    options = poptorch.Options().showCompilationProgressBar(False).useIpuModel(True)
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-3)
    training = poptorch.trainingModel(module, options, optimizer)
    return lambda: training(*batch)


def train_resnet(side: str, batch: int, image: int, dtype: torch.dtype) -> int:
    """Peak bytes of a process that trains ResNet-50 for a few steps."""
    torch.manual_seed(0)
    make = plain_step if side == "plain" else popple_step
    images = torch.randn(batch, 3, image, image).to(dtype)
    data = images, torch.randint(0, 1000, (batch,))
    step = make(WithLoss(resnet50()).to(dtype), data)
    for _ in range(NUM_STEPS):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def grow(num_steps: int) -> int:
    """Bytes that a process which trains a small CNN has gained after settling."""
    torch.manual_seed(0)
    data = torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))
    step = popple_step(WithLoss(mnist_cnn()), data)
    for _ in range(NUM_SETTLING):
        step()
    before = resident_bytes()
    for _ in range(num_steps - NUM_SETTLING):
        step()
    return resident_bytes() - before


def resident_bytes() -> int:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measured(*arguments: str) -> int:
    """What this script prints for these arguments, in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, *arguments]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(finished.stdout.split()[-1])


def main() -> None:
    """Print the three measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--part", choices=["plain", "popple", "growth"])
    arguments = parser.parse_args()
    if arguments.part == "growth":
        print(grow(arguments.steps))
        return
    if arguments.part:
        dtype = torch.float16 if arguments.half else torch.float32
        print(train_resnet(arguments.part, arguments.batch, arguments.image, dtype))
        return
    sizes = ["--batch", str(arguments.batch), "--image", str(arguments.image)]
    sizes += ["--half"] if arguments.half else []
    plain = measured("--part", "plain", *sizes)
    popple = measured("--part", "popple", *sizes)
    growth = measured("--part", "growth", "--steps", str(arguments.steps))
    print(f"ResNet-50, batch {arguments.batch}, peak memory")
    print(f"  plain PyTorch {plain / MEBI:8.0f} MiB")
    print(f"  PopTorch      {popple / MEBI:8.0f} MiB, {popple / plain:.3f} of that")
    print(f"growth from step {NUM_SETTLING} to {arguments.steps}")
    print(f"  small CNN     {growth / MEBI:8.1f} MiB")


if __name__ == "__main__":
    main()
