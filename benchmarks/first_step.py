"""How long the beginning of a PopTorch program takes.

    python benchmarks/first_step.py

Each line is a program of its own: the import of poptorch after that of torch, and the
first training step of a small CNN and of BERT-Large, beside the same step of plain
PyTorch. Capture, compilation of the default backend and the step itself are in it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
from torch import nn  # noqa: E402

from benchmarks.modelling import SEQUENCE, VOCABULARY, Bert  # noqa: E402
from benchmarks.models import WithLoss, mnist_cnn  # noqa: E402

IMPORT = """
import time, torch
start = time.perf_counter()
import poptorch
print(time.perf_counter() - start)
"""


def cnn() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The CNN and a batch of 16."""
    return WithLoss(mnist_cnn()), (
        torch.randn(16, 1, 28, 28),
        torch.randint(10, (16,)),
    )


def bert() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """BERT-Large and a batch of 2."""
    ids = torch.randint(VOCABULARY, (2, SEQUENCE))
    return Bert(24), (ids, ids)


MODELS = {"cnn": cnn, "bert": bert}


def seconds_of(step: Callable[[], object]) -> float:
    """Time of one call."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def plain_seconds(name: str) -> float:
    """The first step in plain PyTorch."""
    module, batch = MODELS[name]()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)

    def step() -> None:
        module(*batch).backward()
        optimizer.step()

    return seconds_of(step)


def popple_seconds(name: str) -> float:
    """The first step of a PopTorch model, from its making on."""
    import poptorch

    module, batch = MODELS[name]()

    def step() -> None:
        options = poptorch.Options().showCompilationProgressBar(False)
        optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-3)
        poptorch.trainingModel(module, options, optimizer)(*batch)

    return seconds_of(step)


def run_apart(*arguments: str) -> float:
    """The number a program of its own prints."""
    done = subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    """Print a table of seconds."""
    if len(sys.argv) == 3:
        measure = {"plain": plain_seconds, "popple": popple_seconds}[sys.argv[1]]
        print(measure(sys.argv[2]))
        return
    print(f"import poptorch after torch  {run_apart('-c', IMPORT):6.2f} s")
    for name in MODELS:
        plain = run_apart(__file__, "plain", name)
        ours = run_apart(__file__, "popple", name)
        print(f"first step, {name:16} {ours:6.2f} s, plain PyTorch {plain:6.2f} s")


if __name__ == "__main__":
    main()
