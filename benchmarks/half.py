"""How fast PopTorch programs run in half precision on a CPU: against plain PyTorch.

    python benchmarks/half.py [--only TEXT] [--rounds 7] [--inference] [--processor]
                              [--without-half]

The same model, data and threads, one step after the other in one process; columns are
medians over rounds of ratios within a round, more is faster. `float32` and `half` are
Popple in half precision against plain PyTorch in float32 and in half precision,
`stochastic` is Popple with stochastic rounding against plain PyTorch in float32, and
`times` the time of a step with stochastic rounding over that of one without.
Half precision in plain PyTorch may take minutes; `--without-half` leaves it out.
With `--processor` times are those of processors, which other programs change less.
"""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import poptorch  # noqa: E402
from benchmarks.models import CASES, GPT2_TINY, Case  # noqa: E402

Step = Callable[[], object]
Batch = tuple[Tensor, ...]
Clock = Callable[[], float]

ROUND_SECONDS = 0.3
NAMES = ("MNIST CNN", "ResNet-18", "transformer", "LSTM", "GRU")
HALF_CASES: dict[str, Case] = {
    **{k: case for k, case in CASES.items() if k.startswith(NAMES)},
    "GPT-2, 2 layers": GPT2_TINY,
}


def in_half(module: nn.Module, batch: Batch) -> tuple[nn.Module, Batch]:
    """A copy of both in half precision."""
    halves = tuple(t.half() if t.is_floating_point() else t for t in batch)
    return copy.deepcopy(module).half(), halves


def plain_step(module: nn.Module, batch: Batch, trains: bool) -> Step:
    """A step of plain PyTorch."""
    if not trains:

        def infer() -> object:
            with torch.no_grad():
                return module(*batch)

        return infer
    # Moments of half weights would be halves, whose epsilon is 0.
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, eps=1e-4)

    def step() -> object:
        optimizer.zero_grad()
        loss = module(*batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def popple_step(module: nn.Module, batch: Batch, trains: bool, rounding: bool) -> Step:
    """The same step as a PopTorch model."""
    options = poptorch.Options().showCompilationProgressBar(False).useIpuModel(True)
    options.Precision.enableStochasticRounding(rounding)
    if not trains:
        inference = poptorch.inferenceModel(module, options)
        return lambda: inference(*batch)
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-3, eps=1e-4)
    training = poptorch.trainingModel(module, options, optimizer)
    return lambda: training(*batch)


def make_steps(case: Case, trains: bool, with_half: bool) -> dict[str, Step]:
    """Each way to run a model, by name."""
    torch.manual_seed(0)
    make, data = case
    module, batch = make(), data()
    if not trains:
        module.eval()
    half = plain_step(*in_half(module, batch), trains)
    steps = {
        "float32": plain_step(copy.deepcopy(module), batch, trains),
        "popple": popple_step(*in_half(module, batch), trains, rounding=False),
        "stochastic": popple_step(*in_half(module, batch), trains, rounding=True),
    }
    return {**steps, "half": half} if with_half else steps


def seconds_per_step(step: Step, count: int, clock: Clock) -> float:
    """Mean time of `count` steps."""
    start = clock()
    for _ in range(count):
        step()
    return (clock() - start) / count


def rounds_of(
    steps: dict[str, Step], rounds: int, clock: Clock
) -> list[dict[str, float]]:
    """Seconds of each step in every round; slow ones run once a round."""
    counts: dict[str, int] = {}
    for name, step in steps.items():
        once = max(seconds_per_step(step, 1, clock), 1e-6)  # the first compiles
        once = seconds_per_step(step, 1 if once > 5 else 3, clock)
        counts[name] = max(1, round(ROUND_SECONDS / once))
    return [
        {
            name: seconds_per_step(run, counts[name], clock)
            for name, run in steps.items()
        }
        for _ in range(rounds)
    ]


def ratio(times: list[dict[str, float]], theirs: str, ours: str) -> float:
    """The median over rounds of how much faster ours is."""
    if theirs not in times[0]:
        return math.nan
    return statistics.median(each[theirs] / each[ours] for each in times)


def main() -> None:
    """Print a table of times and ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--without-half", action="store_true")
    parser.add_argument("--processor", action="store_true")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.processor else time.perf_counter
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    heads = ("model", "popple", "float32", "half", "stochastic", "times")
    print("{:28} {:>12} {:>8} {:>8} {:>11} {:>6}".format(*heads))
    gains: list[float] = []
    for name, case in HALF_CASES.items():
        if arguments.only.lower() not in name.lower():
            continue
        steps = make_steps(case, not arguments.inference, not arguments.without_half)
        times = rounds_of(steps, arguments.rounds, clock)
        found = [
            ratio(times, "float32", "popple"),
            ratio(times, "half", "popple"),
            ratio(times, "float32", "stochastic"),
            ratio(times, "stochastic", "popple"),
        ]
        if not math.isnan(found[1]):
            gains.append(found[1])
        own = statistics.median(each["popple"] for each in times)
        columns = "{:8.2f} {:8.2f} {:11.2f} {:6.2f}".format(*found)
        print(f"{name:28} {1e3 * own:9.3f} ms {columns}", flush=True)
    if gains:
        mean = math.exp(statistics.fmean(map(math.log, gains)))
        print(f"geometric mean over plain PyTorch in half precision {mean:.2f}")


if __name__ == "__main__":
    main()
