"""How fast PopTorch programs run: one training step against plain PyTorch.

    python benchmarks/poptorch.py [--backend replay|inductor] [--device cpu|cuda]
                                  [--only TEXT] [--rounds 15] [--processor]

The same model, data, optimiser and threads; the two take turns in one process, a round
each, and the ratio is of the medians. More than 1 is faster than PyTorch. The opponent
of the inductor backend is torch.compile. With `--processor` times are those of
processors, which other programs on the computer change less.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
from torch import nn  # noqa: E402

import poptorch  # noqa: E402
from benchmarks.models import CASES, Case  # noqa: E402

ROUND_SECONDS = 0.3
Clock = Callable[[], float]


def eager_step(
    module: nn.Module, batch: tuple[torch.Tensor, ...], device: str, compiled: bool
) -> Callable[[], object]:
    """A plain training step, through torch.compile if asked for."""
    module = module.to(device)
    batch = tuple(tensor.to(device) for tensor in batch)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    call = torch.compile(module) if compiled else module

    def step() -> object:
        optimizer.zero_grad()
        loss = call(*batch)
        loss.backward()
        optimizer.step()
        return loss.detach().cpu()

    return step


def popple_step(
    module: nn.Module, batch: tuple[torch.Tensor, ...]
) -> Callable[[], object]:
    """The same step as a PopTorch training model."""
    options = poptorch.Options().showCompilationProgressBar(False).useIpuModel(True)
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-3)
    training = poptorch.trainingModel(module, options, optimizer)
    return lambda: training(*batch)


def seconds_per_step(step: Callable[[], object], count: int, clock: Clock) -> float:
    """Mean time of `count` steps."""
    start = clock()
    for _ in range(count):
        step()
    return (clock() - start) / count


def compare(
    case: Case, backend: str, device: str, rounds: int, clock: Clock
) -> tuple[float, float]:
    """Median seconds of a step: PyTorch's and ours."""
    torch.manual_seed(0)
    make, data = case
    module, batch = make(), data()
    theirs = eager_step(copy.deepcopy(module), batch, device, backend == "inductor")
    ours = popple_step(module, batch)
    for step in (theirs, ours):
        seconds_per_step(step, 3, clock)
    count = max(3, round(ROUND_SECONDS / seconds_per_step(theirs, 3, clock)))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for index, step in enumerate((theirs, ours)):
            times[index].append(seconds_per_step(step, count, clock))
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    """Print a table of times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="replay")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--processor", action="store_true")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.processor else time.perf_counter
    os.environ["POPPLE_BACKEND"] = arguments.backend
    os.environ["POPPLE_DEVICE"] = arguments.device
    rival = "torch.compile" if arguments.backend == "inductor" else "eager"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'model':28} {rival:>14} {'popple':>12} {'ratio':>6}")
    ratios: list[float] = []
    for name, case in CASES.items():
        if arguments.only.lower() not in name.lower():
            continue
        theirs, ours = compare(
            case, arguments.backend, arguments.device, arguments.rounds, clock
        )
        ratios.append(theirs / ours)
        print(
            f"{name:28} {1e3 * theirs:11.3f} ms {1e3 * ours:9.3f} ms {ratios[-1]:6.2f}",
            flush=True,
        )
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")


if __name__ == "__main__":
    main()
