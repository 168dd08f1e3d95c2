# %% [markdown]
"""
Copyright (c) 2026 Popple contributors. All rights reserved.
"""

# %% [markdown]
"""
# Question Answering on IPUs using BERT - Training on a Virtual Pod
"""

# %% [markdown]
"""
| Domain | Tasks | Model | Datasets | Workflow | Number of IPUs | Execution time |
|---|---|---|---|---|---|---|
| NLP | Question answering | BERT | Made for the notebook | Training, evaluation, profiling | recommended: 16 (min: 4) | 2 min |
"""

# %% [markdown]
"""
Language models are larger than the memory of one processor, so they are cut into parts that
work side by side. Where to cut decides how much of an expensive machine stands idle. This
notebook trains a small model that answers questions, on as many processors as you have, and
then asks how BERT-base would run on the same machine. You see which processor waits for which,
and what a better cut gains.

In this notebook you will learn how to:

- train a BERT in a pipeline with copies
- evaluate and save the model
- compare splits of the layers
- profile BERT-base without running it

For inference take the saved checkpoint and `poptorch.inferenceModel`. How the pipeline is
modelled is told in [the cost model](../../docs/cost_model.md).

[![Join the community](../community-badge.svg)](../../docs/support.md)
"""

# %% [markdown]
"""
## Environment setup

This notebook runs on any computer with Popple: `pip install 'popple[torch,notebook]'`, then
`popple notebook open` starts Jupyter with virtual IPUs. On IPU hardware enable the Poplar
SDK first. [Notebooks](../../docs/notebooks.md) tells more, about VS Code too.
"""

# %% [markdown]
"""
## Dependencies and configuration

Install the dependencies:
"""

# %% tags=["hide_output", "ignore_code_only"]
# %pip install -q -r ../requirements.txt

# %% [markdown]
"""
A pipeline takes four IPUs, and as many copies of it run as the machine has room for: four on
a Pod16, one on four IPUs.
"""

# %%
import os
import tempfile
from pathlib import Path

number_of_ipus = int(os.getenv("NUM_AVAILABLE_IPU", 16))
pod_type = os.getenv("GRAPHCORE_POD_TYPE", "pod16")
checkpoint_directory = os.getenv("CHECKPOINT_DIR") or tempfile.mkdtemp()
ipus_per_pipeline = 4
replicas = max(1, number_of_ipus // ipus_per_pipeline)
print(f"{pod_type}: {replicas} x pipeline of {ipus_per_pipeline} IPUs")

# %% [markdown]
"""
These are the values to experiment with:
"""

# %% tags=["parameters"]
updates = 24  # updates of the weights in the training
global_batch = 64  # questions to an update, over all copies
micro_batch = 2  # questions that are in a stage at a time

# %% [markdown]
"""
## Train a BERT in a pipeline with copies

`api.py` has the model: an embedding, layers of an encoder, and a head that points at the answer.
`split` says how many layers each IPU gets. The data are made, so that nothing has to be
downloaded: a question word, then a text with one name, one place, one time and one number. The
answer is the place of the word that was asked for.
"""

# %%
import matplotlib.pyplot as plt
from api import Bert, QuestionAnswering, as_text, make_questions, pipelined

for words, answer in zip(*make_questions(3)):
    text = as_text(words)
    print(f"{text} -> {text.split()[answer]}")

accumulation = global_batch // micro_batch // replicas
split = [1, 1, 1, 1]
application = QuestionAnswering(split, replicas, micro_batch, accumulation)
losses = application.train(updates)
application

# %%
plt.figure(figsize=(4.5, 2.4))
plt.plot(losses, marker=".")
plt.xlabel("update")
plt.ylabel("mean loss")
plt.show()

# %% [markdown]
"""
## Evaluate and save the model

The questions are new ones. The checkpoint is a plain file of PyTorch, and loads into a model
without a pipeline, too.
"""

# %%
metrics = application.evaluate()
print(f"right answers: {metrics['accuracy']:.1%}")
words, answers = make_questions(3, seed=7)
for text, place in zip(map(as_text, words), application.answer(words)):
    print(f"{text} -> {text.split()[place]}")

checkpoint = Path(checkpoint_directory) / "bert.pt"
application.save_checkpoint(checkpoint)
application.change_checkpoint(checkpoint)

# %% [markdown]
"""
## Compare splits of the layers

A pipeline is as fast as its slowest stage. Eight layers are dealt out in three ways; compiling
is enough to see how long each IPU works.
"""

# %%
import poptorch
import torch

import popple


def profile(split, width, heads, num_words, length, size, count):
    model = Bert(split, width, heads, num_words, length).half()
    optimizer = poptorch.optim.AdamW(model.parameters())
    training_model = poptorch.trainingModel(
        model, pipelined(count, replicas), optimizer
    )
    num_questions = size * count * replicas
    questions = torch.zeros(num_questions, length, dtype=torch.long)
    training_model.compile(questions, torch.zeros(num_questions, dtype=torch.long))
    modelled = popple.modelled(training_model)
    training_model.destroy()
    return modelled


splits = ([2, 2, 2, 2], [1, 2, 2, 3], [4, 2, 1, 1])
found = {}
for each in splits:
    found[str(each)] = profile(each, 128, 2, 1024, 64, 4, 8)
for name, modelled in found.items():
    idle = modelled.simulation.timeline.idle_fraction
    speed = modelled.samples_per_second
    print(f"{name}: idle {idle:.0%} of the time, {speed:,.0f} questions/s")

# %% [markdown]
"""
## Profile BERT-base without running it

Twelve layers of width 768 in half precision, three to an IPU. The picture is the timeline of
one update: forward and backward passes of each micro-batch, and white where an IPU waits while
the pipeline fills and drains.
"""

# %%
base = profile([3, 3, 3, 3], 768, 12, 30522, 128, 2, 16)
base

# %%
simulation = base.simulation
figure, axis = plt.subplots(figsize=(8, 2.2))
for part in simulation.timeline.slices:
    if part.stage >= 0 and part.chip >= 0:
        colour = plt.cm.tab20(part.stage % 20)
        length = part.end_cycles - part.start_cycles
        axis.barh(part.chip, length, left=part.start_cycles, color=colour, height=0.8)
axis.set_yticks(
    range(ipus_per_pipeline), [f"IPU {n}" for n in range(ipus_per_pipeline)]
)
axis.invert_yaxis()
axis.set_xlabel("cycles of one update; colours are stages")
plt.show()
print(f"idle {simulation.timeline.idle_fraction:.0%} of the time")

# %% [markdown]
"""
The first IPU holds the embedding as well, and is the fullest:
"""

# %%
from popple.program import chip_totals

chip = base.target.chip
totals = chip_totals(simulation.memory.total, ipus_per_pipeline, chip.num_tiles)
for number, total in enumerate(totals):
    share = total / (chip.num_tiles * chip.tile_memory_bytes)
    print(f"IPU {number}: {total / 2**20:.0f} MiB, {share:.0%} of its memory")

# %% [markdown]
"""
At the end the IPUs are given back, since the kernel lives on:
"""

# %%
application.close()

# %% [markdown]
"""
## Conclusions and next steps

You cut a model with `BeginBlock`, ran it with `PipelinedExecution` and put copies side by
side with `replicationFactor`. Splits of the same layers differed in speed, because the slowest
stage decides. `popple.modelled` profiled BERT-base in seconds, with the timeline and the memory
of each IPU, without computing a single value of it.

- `will_it_fit/will_it_fit.ipynb` looks closer at memory
- [The cookbook](../../docs/cookbook.md) says how to choose a split
- [Several processes](../../docs/several_processes.md) runs one program on more hosts
"""
