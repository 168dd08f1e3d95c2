"""How fast PopTorch programs run on a GPU: one training step against plain PyTorch.

    python benchmarks/poptorch_cuda.py [--only TEXT] [--rounds 10]
                                       [--modes default,reduce-overhead]

The program is that of the CPU; POPPLE_DEVICE=cuda and POPPLE_BACKEND=inductor make it
one CUDA graph of compiled kernels. Opponents are eager PyTorch and torch.compile in
each mode, with the same model, optimiser and data, which every step copies to the GPU.
All take turns in one process, a round each; ratios are of medians and more than 1 is
faster than PyTorch. Losses of the first steps are compared with those of the CPU.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
from torch import nn  # noqa: E402

import poptorch  # noqa: E402
from benchmarks.models import CASES, Bert, Case  # noqa: E402

Batch = tuple[torch.Tensor, ...]
Step = Callable[[], torch.Tensor]

ROUND_SECONDS = 0.3
NUM_COMPARED = 3


@dataclass(frozen=True)
class Contest:
    """A model, what float32 products are computed in, and how near the losses are."""

    case: Case
    precision: str
    tolerance: float


def _bert(dtype: torch.dtype | None) -> Case:
    def data() -> Batch:
        ids = torch.randint(0, 30_522, (2, 8, 128))
        return ids[0], ids[1]

    return lambda: Bert(dtype=dtype), data


CONTESTS = {
    "small CNN, batch 16": Contest(CASES["MNIST CNN, batch 16"], "highest", 1e-2),
    "ResNet-18 32x32, batch 32": Contest(
        CASES["ResNet-18 32x32, batch 32"], "highest", 1e-2
    ),
    "BERT-base b8 s128 bf16": Contest(_bert(torch.bfloat16), "high", 2e-2),
    "BERT-base b8 s128 tf32": Contest(_bert(None), "high", 1e-2),
}


def torch_step(module: nn.Module, batch: Batch, device: str, mode: str) -> Step:
    """A plain training step; `mode` is "eager" or one of torch.compile's.

    With " fused" behind it, the optimiser is torch's fused one.
    """
    module = module.to(device)
    is_fused = "fused" in mode
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=is_fused or None)
    mode = mode.removesuffix(" fused")
    call = module
    if mode != "eager":
        call = torch.compile(module, mode=mode, dynamic=False)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = call(*(tensor.to(device, non_blocking=True) for tensor in batch))
        loss.backward()
        optimizer.step()
        return loss.detach().cpu()

    return step


def popple_step(module: nn.Module, batch: Batch) -> Step:
    """The same step as a PopTorch training model."""
    options = poptorch.Options().showCompilationProgressBar(False).useIpuModel(True)
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-4)
    training = poptorch.trainingModel(module, options, optimizer)
    return lambda: training(*batch)


def first_losses(step: Step) -> list[float]:
    """What the first steps return."""
    return [float(step()) for _ in range(NUM_COMPARED)]


def seconds_per_step(step: Step, count: int) -> float:
    """Mean time of `count` steps; each ends when its loss is on the host."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def medians(steps: dict[str, Step], rounds: int) -> dict[str, float]:
    """Median seconds of each step, measured in turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        seconds_per_step(step, 10)
    for _ in range(rounds):
        for name, step in steps.items():
            count = max(3, round(ROUND_SECONDS / seconds_per_step(step, 3)))
            times[name].append(seconds_per_step(step, count))
    return {name: statistics.median(values) for name, values in times.items()}


def contest(name: str, wanted: Contest, modes: list[str], rounds: int) -> None:
    """Run one contest and print its lines."""
    torch.set_float32_matmul_precision(wanted.precision)
    torch.compiler.reset()  # what it learnt from the last model would slow this one
    torch.manual_seed(0)
    make, data = wanted.case
    module, batch = make(), data()
    expected = first_losses(torch_step(copy.deepcopy(module), batch, "cpu", "eager"))
    steps: dict[str, Step] = {}
    for mode in ["eager", *modes]:
        steps[mode] = torch_step(copy.deepcopy(module), batch, "cuda", mode)
    steps["popple"] = popple_step(module, batch)
    start = time.perf_counter()
    found = first_losses(steps["popple"])
    ready = time.perf_counter() - start
    errors = [abs(f / e - 1) for f, e in zip(found, expected, strict=True)]
    verdict = "as on the CPU" if max(errors) < wanted.tolerance else "WRONG"
    print(
        f"{name}: losses {verdict}, {max(errors):.1e} apart, first steps {ready:.0f} s"
    )
    times = medians(steps, rounds)
    for mode, seconds in times.items():
        print(f"  {mode:30} {1e3 * seconds:9.3f} ms {seconds / times['popple']:7.2f}")
    best = min(times[mode] for mode in modes)
    print(f"  against the best mode of torch.compile {best / times['popple']:.2f}")
    sys.stdout.flush()


def main() -> None:
    """Run the contests asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--modes", default="default,reduce-overhead")
    arguments = parser.parse_args()
    os.environ["POPPLE_BACKEND"] = "inductor"
    os.environ["POPPLE_DEVICE"] = "cuda"
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    for name, wanted in CONTESTS.items():
        if arguments.only.lower() in name.lower():
            contest(name, wanted, arguments.modes.split(","), arguments.rounds)


if __name__ == "__main__":
    main()
