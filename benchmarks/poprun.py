"""How training scales: two processes of one thread against one process of one thread.

    python benchmarks/poprun.py [--only TEXT] [--rounds 3] [--accumulation 4]

Both train the same model with two replicas on the same number of samples: the one
process runs its replicas in turn, the two processes one replica each, started by
poprun. The two take turns, and the ratio is of the medians of samples per second. More
than 1 is faster than one process; 2 cannot be exceeded. The last column is the same by
processor time of the first instance, messages included: what a computer that is busy
with something else would show if it were not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
# This folder has scripts with the names of packages: look beside it instead.
sys.path[0] = str(ROOT)

CASES = ("ResNet-18 32x32, batch 32", "transformer, 4 layers")
REPLICAS = 2


def train(name: str, accumulation: int) -> None:
    """Train one case and print samples per second, on all replicas together."""
    import torch

    import popdist
    import popdist.poptorch
    import poptorch
    from benchmarks.models import CASES as MODELS

    torch.set_num_threads(1)
    if popdist.isPopdistEnvSet():
        popdist.init()
        options = popdist.poptorch.Options()
    else:
        options = poptorch.Options().replicationFactor(REPLICAS)
    options.randomSeed(0)
    options.showCompilationProgressBar(False)
    options.Training.gradientAccumulation(accumulation)
    make_model, make_batch = MODELS[name]
    model = make_model()
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=1e-3)
    training = poptorch.trainingModel(model, options, optimizer)
    count = popdist.getNumLocalReplicas() if popdist.isPopdistEnvSet() else REPLICAS
    parts = [make_batch() for _ in range(accumulation * count)]
    batch = tuple(torch.cat(tensors) for tensors in zip(*parts, strict=True))
    for _ in range(3):
        training(*batch)
    popdist.synchronize()
    start, used, steps = time.perf_counter(), time.process_time(), 0
    # All instances must make equally many steps: the number depends on no clock.
    for _ in range(_num_steps(name, accumulation)):
        training(*batch)
        steps += 1
    popdist.synchronize()
    spans = (time.perf_counter() - start, time.process_time() - used)
    samples = steps * len(batch[0]) * REPLICAS // count
    if popdist.getInstanceIndex() == 0:
        rates = " ".join(str(samples / span) for span in spans)
        print(f"samples per second: {rates}", flush=True)


def _num_steps(name: str, accumulation: int) -> int:
    """Steps of about five seconds on one core."""
    return max(3, (16 if "ResNet" in name else 80) // accumulation)


def measure(name: str, accumulation: int, launcher: list[str]) -> list[float]:
    """Samples per second of a run with one thread per process: clock, processor."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    worker = [__file__, "--worker", name, "--accumulation", str(accumulation)]
    done = subprocess.run(
        [*launcher, sys.executable, *worker],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [float(rate) for rate in str(done.stdout).rpartition(":")[2].split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--accumulation", type=int, default=4)
    parser.add_argument("--worker", default="", help="train this case and end")
    arguments = parser.parse_args()
    if arguments.worker:
        train(arguments.worker, arguments.accumulation)
        return
    poprun = [sys.executable, "-m", "popple.tools.poprun"]
    poprun += [f"--num-instances={REPLICAS}", f"--num-replicas={REPLICAS}"]
    for name in (case for case in CASES if arguments.only in case):
        found: list[list[list[float]]] = []
        for _ in range(arguments.rounds):
            launchers: tuple[list[str], ...] = ([], poprun)
            found.append([measure(name, arguments.accumulation, x) for x in launchers])
        (one, one_used), (two, two_used) = (
            [statistics.median(rates) for rates in zip(*runs, strict=True)]
            for runs in zip(*found, strict=True)
        )
        ratios = f"{two / one:6.2f} x {two_used / one_used:6.2f} x"
        print(f"{name:28}{one:9.1f}/s {two:9.1f}/s {ratios}", flush=True)


if __name__ == "__main__":
    main()
