"""Architecture: the same PopTorch program on chips that do not exist.

A chip is a text file: a known one as the base, and what differs. Beside this program
lie `wide_chip.toml`, a Bow with twice the tiles, and `deep_chip.toml`, one with twice
the memory on each. Any program can be taken to them, unchanged:

    popple run --target examples/wide_chip.toml script.py
"""

import os
from pathlib import Path

import torch
from torch import nn

import popple
import poptorch

WIDTH = 512
NUM_LAYERS = 4
BATCH_SIZE = 18432
PHASES = {
    "compute": "compute_cycles",
    "exchange": "exchange_cycles",
    "host": "host_cycles",
    "all": "cycles",
}


class FeedForward(nn.Module):
    """The layer that most weights of a transformer are in."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    """A stack of layers, with a loss to train them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(FeedForward() for _ in range(NUM_LAYERS)))

    def forward(self, x):
        return poptorch.identity_loss(self.layers(x).float().square(), "mean")


def model_on(target):
    """The training step on another machine; compiled, but not run."""
    os.environ["POPPLE_TARGET"] = str(target)
    model = Model().half()
    optimizer = poptorch.optim.SGD(model.parameters(), 0.1, use_combined_accum=True)
    training_model = poptorch.trainingModel(model, poptorch.Options(), optimizer)
    training_model.compile(torch.zeros(BATCH_SIZE, WIDTH).half())
    training_model.detachFromDevice()
    return popple.modelled(training_model)


def describe(modelled, base):
    """One line: size, whether the program fits, speed of each phase against `base`."""
    simulation, chip = modelled.simulation, modelled.target.chip
    words = "fits" if simulation.fits else "does not fit"
    speeds = ", ".join(
        f"{phase} {getattr(base, cycles) / getattr(simulation.cost, cycles):.1f}"
        for phase, cycles in PHASES.items()
    )
    tile = f"{chip.tile_memory_bytes // 1024} KiB"
    return f"{chip.name}: {chip.num_tiles} tiles of {tile}, {words}; {speeds}"


def main():
    folder = Path(__file__).parent
    targets = ("bow", folder / "wide_chip.toml", folder / "deep_chip.toml")
    modelled = [model_on(target) for target in targets]
    print("chip, and how many times as fast as a Bow each phase is:")
    for each in modelled:
        print(describe(each, modelled[0].simulation.cost))


if __name__ == "__main__":
    main()
