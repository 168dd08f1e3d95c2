"""Fitting: a model that is too large for an IPU, and changes that make it fit.

Nothing is run here. A program is compiled with one set of options after the other, and
the model of the machine says how full the fullest tile is and how fast it would be:
smaller batches, state off the chip, more IPUs, recomputation, half precision.
"""

import torch
from torch import nn

import popple
import poptorch

WIDTH = 1024
BATCH_SIZE = 1024


class FeedForward(nn.Module):
    """The layer that most weights of a transformer are in."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, keep):
        return keep(x + self.down(keep(torch.relu(self.up(x)))))


class Model(nn.Module):
    """Four layers in two blocks; options say on which IPUs the blocks run.

    A pipeline computes activations again for the backward pass, unless they are marked
    as checkpoints; with `keeps_all`, all are.
    """

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(FeedForward() for _ in range(4))
        self.keeps_all = False

    def forward(self, x):
        keep = poptorch.recomputationCheckpoint if self.keeps_all else poptorch.nop
        with poptorch.Block("first"):
            x = self.layers[1](self.layers[0](x, keep), keep)
        with poptorch.Block("second"):
            x = self.layers[3](self.layers[2](x, keep), keep)
            return poptorch.identity_loss(x.float().square(), "mean")


def one_ipu():
    both = poptorch.Stage("first", "second").ipu(0)
    return poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution(both))


def two_ipus(strategy=poptorch.ShardedExecution):
    stages = (poptorch.Stage("first").ipu(0), poptorch.Stage("second").ipu(1))
    return poptorch.Options().setExecutionStrategy(strategy(*stages))


def state_off_chip():
    options = one_ipu()
    location = poptorch.TensorLocationSettings().useOnChipStorage(False)
    options.TensorLocations.setOptimizerLocation(location)
    return options


def pipelined():
    options = two_ipus(poptorch.PipelinedExecution)
    options.Training.gradientAccumulation(8)
    return options


def print_fit(what, model, options, batch_size=BATCH_SIZE):
    """Compile a training step with Adam, and say how full and how fast it is."""
    optimizer = poptorch.optim.AdamW(model.parameters())
    training_model = poptorch.trainingModel(model, options, optimizer)
    num_samples = batch_size * options.Training.gradient_accumulation
    dtype = next(model.parameters()).dtype
    training_model.compile(torch.zeros(num_samples, WIDTH, dtype=dtype))
    modelled = popple.modelled(training_model)
    training_model.destroy()
    simulation, chip = modelled.simulation, modelled.target.chip
    full = simulation.peak_tile_bytes / chip.tile_memory_bytes
    word = "fits" if simulation.fits else "does not fit"
    print(f"{what}: {word}, {full:.0%} full, {modelled.samples_per_second:,.0f}/s")


def main():
    model = Model()
    print_fit(f"one IPU, batch {BATCH_SIZE}", model, one_ipu())
    print_fit("one IPU, batch 128", model, one_ipu(), 128)
    print_fit("one IPU, Adam's state off the chip", model, state_off_chip())
    print_fit("two IPUs in turns", model, two_ipus())
    model.keeps_all = True
    print_fit("pipeline that keeps activations", model, pipelined())
    model.keeps_all = False
    print_fit("pipeline that recomputes them", model, pipelined())
    print_fit("one IPU, float16", model.half(), one_ipu())


if __name__ == "__main__":
    main()
