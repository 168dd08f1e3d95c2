# %% [markdown]
"""
Copyright (c) 2026 Popple contributors. All rights reserved.
"""

# %% [markdown]
"""
# Tensor Inspection on IPUs using a Pipelined MLP - Training with Keras
"""

# %% [markdown]
"""
| Domain | Tasks | Model | Datasets | Workflow | Number of IPUs | Execution time |
|---|---|---|---|---|---|---|
| Vision | Debugging of training | MLP in two stages | Handwritten digits | Training, evaluation | recommended: 2 (min: 2) | 1 min |
"""

# %% [markdown]
"""
A model that does not learn keeps its reasons inside: dead activations, gradients that vanish
or explode. This notebook shows how to look inside while a model trains, without stopping it
and without changing what it computes. The model is split over two processors that work at the
same time, as large models are. You see its activations and gradients, batch by batch.

In this notebook you will learn how to:

- split a model into pipeline stages
- send activations and gradients to the host
- train and draw what was sent
- compare pipeline schedules
- evaluate and save the model

Looking at tensors during inference works the same way, with `predict`. What Keras programs can
use is listed in [TensorFlow programs](../../docs/tensorflow.md).

[![Join the community](../community-badge.svg)](../../docs/support.md)
"""

# %% [markdown]
"""
## Environment setup

This notebook runs on any computer with Popple: `pip install 'popple[tensorflow,notebook]'`,
then `popple notebook open` starts Jupyter with virtual IPUs. On IPU hardware enable the Poplar
SDK first. [Notebooks](../../docs/notebooks.md) tells more, about VS Code too.
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
import tempfile
from pathlib import Path

number_of_ipus = int(os.getenv("NUM_AVAILABLE_IPU", 16))
checkpoint_directory = os.getenv("CHECKPOINT_DIR") or tempfile.mkdtemp()

# %% [markdown]
"""
These are the values to experiment with:
"""

# %% tags=["parameters"]
epochs = 4  # how often the data are seen
batch_size = 32  # images in a micro-batch
accumulation = 8  # micro-batches whose gradients make one update
shown_gradients = ["second/kernel"]  # variables whose gradients are sent, all if empty

# %%
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow import keras
from tensorflow.python import ipu

tf.get_logger().setLevel("ERROR")
config = ipu.config.IPUConfig()
config.auto_select_ipus = min(number_of_ipus, 2)
config.configure_ipu_system()

digits = load_digits()
pixels = (digits.data / 16).astype("float32")
labels = digits.target.astype("int32")
train = slice(0, 1536)
test = slice(1536, 1792)

# %% [markdown]
"""
## Split a model into pipeline stages

`PipelineStage` says to which stage layers belong; each stage runs on an IPU of its own. While
the second works on one batch, the first works on the next. Inputs have a fixed size of batch:
what is sent to the host has to have a known shape.
"""

# %% [markdown]
"""
## Send activations and gradients to the host

`outfeeds.py` beside this notebook has the pieces: `Show` is a layer that passes its input on
and sends it, `ShowGradients` is an optimiser that sends what it applies. Both gather tensors
in a dictionary, and send it once per batch or once per update.
"""

# %%
from outfeeds import Gatherer, Show, ShowGradients


def make_model(activations):
    image = keras.Input(64, batch_size=batch_size)
    with keras.ipu.PipelineStage(0):
        x = keras.layers.Dense(256, activation="relu", name="first")(image)
    with keras.ipu.PipelineStage(1):
        x = keras.layers.Dense(128, activation="relu", name="second")(x)
        x = Show(activations, name="second_activations")(x)
        x = keras.layers.Dense(10, name="third")(x)
        x = Show(activations, is_last=True, name="logits")(x)
    return keras.Model(image, x)


def train_model(schedule):
    """Train from the same start; the model, its losses and what it sent."""
    keras.utils.set_random_seed(0)
    activations, gradients = Gatherer(), Gatherer(shown_gradients)
    model = make_model(activations)
    model.set_pipelining_options(
        gradient_accumulation_steps_per_replica=accumulation,
        gradient_accumulation_reduction_method="mean",
        pipeline_schedule=schedule,
    )
    model.compile(
        optimizer=ShowGradients(gradients, 0.2, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        steps_per_execution=2 * accumulation,
    )
    history = model.fit(
        pixels[train], labels[train], batch_size=batch_size, epochs=epochs, verbose=0
    )
    return model, history.history["loss"], activations.receive(), gradients.receive()


# %% [markdown]
"""
## Train and draw what was sent

Keras models for the IPU are made and used in the scope of a strategy.
"""

# %%
schedules = ipu.ops.pipelining_ops.PipelineSchedule
strategy = ipu.ipu_strategy.IPUStrategy()
print(strategy)
with strategy.scope():
    model, losses, activations, gradients = train_model(schedules.Grouped)
print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}")
for name, values in {**activations, **gradients}.items():
    print(f"{name}: {values.shape}")

# %% [markdown]
"""
The first axis counts batches, or updates for gradients. A unit whose activation is zero for
every image is dead; the share of zeros should neither be 0 nor grow towards 1. The norm of the
gradient says whether the layer still learns.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

second = activations["second_activations"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.6))
left.plot((second == 0).mean(axis=(1, 2)))
left.set_xlabel("batch")
left.set_title("share of zeros after 'second'", fontsize=9)
for name, values in gradients.items():
    right.plot(np.linalg.norm(values.reshape(len(values), -1), axis=1), label=name)
right.set_xlabel("update")
right.set_title("norm of the gradient", fontsize=9)
right.legend(fontsize=8)
plt.tight_layout()
plt.show()

dead = (second == 0).all(axis=(0, 1)).sum()
print(f"{dead} of {second.shape[-1]} units were never active")

# %% [markdown]
"""
## Compare pipeline schedules

`Grouped` runs all forward passes of an update, then all backward passes. `Sequential` runs
one batch at a time, as if nothing overlapped: the same losses, and IPUs that wait.
"""

# %%
import popple

with strategy.scope():
    slow_model, slow_losses, _, _ = train_model(schedules.Sequential)
print(f"losses are the same: {np.allclose(losses, slow_losses, rtol=1e-4)}")

busy = {}
for name, each in (("Grouped", model), ("Sequential", slow_model)):
    simulation = popple.modelled(each).simulation
    cycles = simulation.cost.cycles
    busy[name] = [part / cycles for part in simulation.busy_cycles_by_chip]
    shares = ", ".join(f"{share:.0%}" for share in busy[name])
    print(f"{name}: {cycles:,} cycles, IPUs busy {shares} of the time")

# %%
plt.figure(figsize=(4.5, 2.2))
for offset, (name, shares) in enumerate(busy.items()):
    places = [index + 0.35 * offset for index in range(len(shares))]
    plt.barh(places, shares, height=0.3, label=name)
plt.yticks([0.17, 1.17], ["IPU 0", "IPU 1"])
plt.xlabel("share of the time that it computes")
plt.legend(fontsize=8)
plt.show()

# %% [markdown]
"""
## Evaluate and save the model

Weights are saved as Keras saves them, and load into a model without pipeline stages.
"""

# %%
with strategy.scope():
    loss, accuracy = model.evaluate(
        pixels[test], labels[test], batch_size=batch_size, verbose=0
    )
print(f"accuracy on {test.stop - test.start} other images: {accuracy:.1%}")
model.save_weights(str(Path(checkpoint_directory) / "digits.weights.h5"))

# %% [markdown]
"""
At the end the IPUs are given back, since the kernel lives on:
"""

# %%
ipu.config.reset_ipu_configuration()

# %% [markdown]
"""
## Conclusions and next steps

You split a model over two IPUs with `PipelineStage`. A layer and an optimiser sent
tensors through an `IPUOutfeedQueue` to the host, where you drew them. The share of zeros and
the norm of the gradient are two numbers that tell early whether a model learns. With
`popple.modelled` you compared two schedules of the pipeline.

- `sharded_graphs/sharded_graphs.ipynb` does without Keras
- `bert_pipeline/bert_pipeline.ipynb` splits a larger model in four
- [TensorFlow programs](../../docs/tensorflow.md) lists what Keras programs can use
"""
