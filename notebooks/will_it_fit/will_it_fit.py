# %% [markdown]
"""
Copyright (c) 2026 Popple contributors. All rights reserved.
"""

# %% [markdown]
"""
# Memory Planning on IPUs using a Transformer Layer - Training
"""

# %% [markdown]
"""
| Domain | Tasks | Model | Datasets | Workflow | Number of IPUs | Execution time |
|---|---|---|---|---|---|---|
| Systems | Memory planning | Feed-forward layers of a transformer | None | Profiling of training | recommended: 2 (min: 2) | 1 min |
"""

# %% [markdown]
"""
Whether a model fits into the memory of a machine is often learnt too late: after a day in a
queue. This notebook answers the question in seconds, without running anything. A training
step that is too large is changed in one way after the other, and each change is judged by
what it saves and by what it costs. You also see when during a step memory is full, and of
what.

In this notebook you will learn how to:

- find out whether a training step fits
- compare changes that make it fit
- see when memory is full, and of what
- open the report in the viewer

The same questions can be asked for inference, where there are no gradients: use
`poptorch.inferenceModel`. [The cost model](../../docs/cost_model.md) says how far to trust
the answers.

[![Join the community](../community-badge.svg)](../../docs/support.md)
"""

# %% [markdown]
"""
## Environment setup

This notebook runs on any computer with Popple: `pip install 'popple[torch,notebook]'`, then
`popple notebook open` starts Jupyter with virtual IPUs. It needs no hardware, and would gain
nothing from it. [Notebooks](../../docs/notebooks.md) tells more, about VS Code too.
"""

# %% [markdown]
"""
## Dependencies and configuration

Install the dependencies:
"""

# %% tags=["hide_output", "ignore_code_only"]
# %pip install -q -r ../requirements.txt

# %%
import os

number_of_ipus = int(os.getenv("NUM_AVAILABLE_IPU", 16))
assert number_of_ipus >= 2, "one of the changes uses two IPUs"

# %% [markdown]
"""
These are the values to experiment with:
"""

# %% tags=["parameters"]
width = 1024  # numbers that describe a word
batch_size = 1024  # words in a batch

# %% [markdown]
"""
## Find out whether a training step fits

The model is two blocks of two feed-forward layers, where most weights of a transformer
are. `compile` is enough: the program is traced, planned for 1472 tiles and simulated.
"""

# %%
import poptorch
import torch
from torch import nn

import popple


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(FeedForward() for _ in range(4))

    def forward(self, x):
        with poptorch.Block("first"):
            x = self.layers[1](self.layers[0](x))
        with poptorch.Block("second"):
            x = self.layers[3](self.layers[2](x))
            return poptorch.identity_loss(x.float().square(), "mean")


def one_ipu():
    both = poptorch.Stage("first", "second").ipu(0)
    return poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution(both))


def model_step(options, model, size=batch_size):
    optimizer = poptorch.optim.AdamW(model.parameters())
    training_model = poptorch.trainingModel(model, options, optimizer)
    count = size * options.Training.gradient_accumulation
    dtype = next(model.parameters()).dtype
    training_model.compile(torch.zeros(count, width, dtype=dtype))
    modelled = popple.modelled(training_model)
    training_model.destroy()
    return modelled


results = {"one IPU": model_step(one_ipu(), Model())}
results["one IPU"]

# %% [markdown]
"""
## Compare changes that make it fit

Each change is one line of options: a smaller batch, the state of the optimiser outside the
chip, two IPUs that take turns, or numbers of half the size.
"""


# %%
def state_outside():
    options = one_ipu()
    location = poptorch.TensorLocationSettings().useOnChipStorage(False)
    options.TensorLocations.setOptimizerLocation(location)
    return options


def two_ipus():
    stages = (poptorch.Stage("first").ipu(0), poptorch.Stage("second").ipu(1))
    return poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution(*stages))


results["small batch"] = model_step(one_ipu(), Model(), batch_size // 8)
results["state outside"] = model_step(state_outside(), Model())
results["two IPUs"] = model_step(two_ipus(), Model())
results["float16"] = model_step(one_ipu(), Model().half())

for name, modelled in results.items():
    full = modelled.simulation.peak_tile_bytes / modelled.target.chip.tile_memory_bytes
    word = "fits" if modelled.simulation.fits else "does not fit"
    print(f"{name:14} {word:13} {full:5.0%} full {modelled.samples_per_second:9,.0f}/s")

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.6), sharey=True)
names = list(results)
tile = next(iter(results.values())).target.chip.tile_memory_bytes
full = [results[name].simulation.peak_tile_bytes / tile for name in names]
fits = [results[name].simulation.fits for name in names]
left.barh(names, full, color=["tab:green" if each else "tab:red" for each in fits])
left.axvline(1, color="black", linestyle=":")
left.set_xlabel("fullest tile, of its memory")
right.barh(names, [results[name].samples_per_second for name in names])
right.set_xlabel("words per second, modelled")
left.invert_yaxis()
plt.tight_layout()
plt.show()

# %% [markdown]
"""
## See when memory is full, and of what

A report has the memory in use after each step of the program. Weights and state are always
there; activations come and go. The largest variables at the peak are where saving begins.
"""

# %%
import tempfile
from pathlib import Path

import pva

report_directory = Path(tempfile.mkdtemp())
model = Model().half()
options = one_ipu().enableProfiling(str(report_directory))
training_model = poptorch.trainingModel(
    model, options, poptorch.optim.AdamW(model.parameters())
)
training_model.compile(torch.zeros(batch_size, width, dtype=torch.float16))
report = pva.openReport(str(next(report_directory.rglob("profile.pop"))))
report

# %%
steps = list(report.compilation.livenessProgramSteps)
live = [step.notAlwaysLiveMemory.bytes / 2**20 for step in steps]
plt.figure(figsize=(7, 2.5))
plt.fill_between(range(len(live)), live, step="mid", alpha=0.6)
plt.xlabel("step of the program")
plt.ylabel("MiB beside weights and state")
plt.show()

peak = max(steps, key=lambda step: step.notAlwaysLiveMemory.bytes)
variables = sorted(peak.notAlwaysLiveMemory.variables, key=lambda v: -v.size)
for variable in variables[:5]:
    print(f"{variable.size / 2**20:6.1f} MiB  {variable.name}")

# %% [markdown]
"""
## Open the report in the viewer

The viewer shows the same and more: memory of each tile, the program tree, every operation.
`popple view DIR` opens it in a browser; as one file it can be sent to others.
"""

# %%
import subprocess
import sys

page = report_directory / "report.html"
command = [sys.executable, "-m", "popple.tools.cli", "view", "--html", str(page)]
subprocess.run([*command, str(report_directory)], check=True, capture_output=True)
print(f"one file of {page.stat().st_size / 2**20:.1f} MiB: {page.name}")

# %% [markdown]
"""
![The viewer with the memory of each tile](../../docs/images/memory.png)

At the end the IPU is given back, since the kernel lives on:
"""

# %%
from popple.notebook import release_devices

release_devices(training_model)

# %% [markdown]
"""
## Conclusions and next steps

You learnt whether a training step fits without running it, from `popple.modelled`.
Smaller batches, state outside the chip with `setOptimizerLocation`, two IPUs with
`ShardedExecution` and half precision each saved memory, at different prices. A report, read
with `pva`, told when memory is full and of what.

- `bert_pipeline/bert_pipeline.ipynb` splits a larger model over a pipeline
- [Reading a report](../../docs/reading_a_report.md) explains every view
- [The cookbook](../../docs/cookbook.md) has the changes above as recipes
"""
