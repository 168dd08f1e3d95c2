# %% [markdown]
"""
Copyright (c) 2026 Popple contributors. All rights reserved.
"""

# %% [markdown]
"""
# Porting of GPU Scripts on IPUs using a CNN - Training with PyTorch and Keras
"""

# %% [markdown]
"""
| Domain | Tasks | Model | Datasets | Workflow | Number of IPUs | Execution time |
|---|---|---|---|---|---|---|
| Vision | Image classification | CNN | Handwritten digits | Training, evaluation | recommended: 4 (min: 1) | 1 min |
"""

# %% [markdown]
"""
Most research code was written for one graphics processor. This notebook takes such a script
and moves it to another kind of machine, one change at a time, with a test after each. You see
which lines change, which do not, and that the results stay the same. At the end the same
script uses more of the machine than the original could, and a second script, written for
another library, goes the same way.

In this notebook you will learn how to:

- run the original script and keep its losses
- move the loss into the model
- wrap the model and compare the losses
- bring several steps into one call
- evaluate and save the ported model
- port a script for Keras in four changes

For inference with the trained network see
`image_classification/image_classification.ipynb`. The [migration guide](../../docs/migrating.md)
has the steps as a list, for programs that were written for the SDK too.

[![Join the community](../community-badge.svg)](../../docs/support.md)
"""

# %% [markdown]
"""
## Environment setup

This notebook runs on any computer with Popple: `pip install 'popple[torch,tensorflow,notebook]'`,
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
steps = 40  # updates of the weights
batch_size = 32  # images to an update
learning_rate = 0.2  # how far each update goes
steps_per_call = 8  # updates that the ported script makes in one call

# %% [markdown]
"""
## Run the original script and keep its losses

This is the script as it was: a network, a loss outside of it, an optimiser, a loop. It would
move model and data with `.to("cuda")`; on this computer it runs on the CPU.
"""

# %%
import torch
from sklearn.datasets import load_digits
from torch import nn

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)


def make_network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


network = make_network()
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(network.parameters(), learning_rate, momentum=0.9)

original = []
for step in range(steps):
    batch = slice(step * batch_size, (step + 1) * batch_size)
    optimizer.zero_grad()
    loss = loss_of(network(images[batch]), labels[batch])
    loss.backward()
    optimizer.step()
    original.append(float(loss.detach()))
print(f"loss {original[0]:.4f} to {original[-1]:.4f}")

# %% [markdown]
"""
## Move the loss into the model

The machine runs a whole step: forward, backward, update. It has to know the loss, so the
model computes it. Nothing else of the network changes.
"""


# %%
class WithLoss(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images, labels=None):
        logits = self.network(images)
        return logits if labels is None else (logits, self.loss(logits, labels))


# %% [markdown]
"""
## Wrap the model and compare the losses

`poptorch.trainingModel` takes model and optimiser; a call is a step. The lines with
`zero_grad`, `backward` and `step` go. The optimiser comes from `poptorch.optim`, under the
same name and with the same arguments.
"""

# %%
import poptorch

model = WithLoss(make_network())
optimizer = poptorch.optim.SGD(model.parameters(), learning_rate, momentum=0.9)
training_model = poptorch.trainingModel(model, optimizer=optimizer)

ported = []
for step in range(steps):
    batch = slice(step * batch_size, (step + 1) * batch_size)
    _, loss = training_model(images[batch], labels[batch])
    ported.append(float(loss))

largest = max(abs(a - b) for a, b in zip(original, ported))
print(f"loss {ported[0]:.4f} to {ported[-1]:.4f}; largest difference {largest:.1e}")
assert largest < 1e-5

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 2.5))
plt.plot(original, label="original", linewidth=4, alpha=0.4)
plt.plot(ported, label="ported", linestyle="--")
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()
plt.show()

# %% [markdown]
"""
## Bring several steps into one call

Between two calls the machine waits for Python: for a loader, a log line, another process. With
`deviceIterations` one call makes several updates, with a batch for each, and the machine waits
less often. The numbers are the same again. The time of the machine is the same too: what is
saved is the time between calls, which is not the machine's, and which Popple does not model.
"""

# %%
import popple

options = poptorch.Options().deviceIterations(steps_per_call)
options.outputMode(poptorch.OutputMode.All)
model = WithLoss(make_network())
optimizer = poptorch.optim.SGD(model.parameters(), learning_rate, momentum=0.9)
fast_model = poptorch.trainingModel(model, options, optimizer)

grouped = []
for call in range(steps // steps_per_call):
    count = steps_per_call * batch_size
    batch = slice(call * count, (call + 1) * count)
    _, loss = fast_model(images[batch], labels[batch])
    grouped += loss.tolist()
assert max(abs(a - b) for a, b in zip(original, grouped)) < 1e-5

for each, num_calls in ((training_model, steps), (fast_model, steps // steps_per_call)):
    speed = popple.modelled(each).samples_per_second
    print(f"{num_calls} calls, {speed:,.0f} images/s while the machine works")

# %% [markdown]
"""
More IPUs are one option more. With `replicationFactor` each of them has a copy of the model
and sees its own batch, so the global batch grows. Compiling is enough to learn the speed. The
models above still hold an IPU each, and give it back first.
"""

# %%
from popple.notebook import release_devices

release_devices(training_model, fast_model)
replicas = min(number_of_ipus, 4)
options = poptorch.Options().deviceIterations(steps_per_call)
options.replicationFactor(replicas)
copied = WithLoss(make_network())
optimizer = poptorch.optim.SGD(copied.parameters(), learning_rate, momentum=0.9)
wide_model = poptorch.trainingModel(copied, options, optimizer)
count = replicas * steps_per_call * batch_size
repeated = torch.arange(count) % len(images)
wide_model.compile(images[repeated], labels[repeated])
popple.modelled(wide_model)

# %% [markdown]
"""
## Evaluate and save the ported model

PopTorch keeps the weights of your module up to date, so that it can be saved as always. A
file that was saved here loads in the original script, and the other way round.
"""

# %%
release_devices(wide_model)
inference_model = poptorch.inferenceModel(model)
held_out = slice(-360, None)
found = inference_model(images[held_out]).argmax(dim=1)


def evaluate(found, labels):
    return float((found == labels).float().mean())


print(f"accuracy after one pass: {evaluate(found, labels[held_out]):.1%}")
torch.save(model.state_dict(), Path(checkpoint_directory) / "ported.pt")

# %% [markdown]
"""
## Port a script for Keras in four changes

The original makes a model, compiles it and fits it. It runs first, as it is:
"""

# %%
import tensorflow as tf
from tensorflow import keras

tf.get_logger().setLevel("ERROR")
pixels = images.numpy().reshape(-1, 8, 8, 1)[: steps * batch_size]
targets = digits.target[: steps * batch_size].astype("int32")


def fit_model(**more):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Conv2D(16, 3, activation="relu", input_shape=(8, 8, 1)),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, **more)
    history = model.fit(pixels, targets, batch_size, 4, shuffle=False, verbose=0)
    return model, history.history["loss"]


_, keras_original = fit_model()
print([f"{loss:.4f}" for loss in keras_original])

# %% [markdown]
"""
The four changes: import `ipu`; say how many IPUs; make and fit the model in the scope of a
strategy; let one program make many steps with `steps_per_execution`. The number of images has
to be a multiple of what one program sees, so a script that does not care drops the rest; and
labels are `int32` above, because the machine is not fed with `int64`.
"""

# %%
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()

with ipu.ipu_strategy.IPUStrategy().scope():
    keras_model, keras_ported = fit_model(steps_per_execution=steps_per_call)
print([f"{loss:.4f}" for loss in keras_ported])
assert max(abs(a - b) for a, b in zip(keras_original, keras_ported)) < 1e-4
popple.modelled(keras_model)

# %% [markdown]
"""
At the end the IPUs are given back, since the kernel lives on:
"""

# %%
release_devices(training_model, fast_model, wide_model, inference_model)
ipu.config.reset_ipu_configuration()

# %% [markdown]
"""
## Conclusions and next steps

You ported a script with two changes: the loss moved into the model, and
`poptorch.trainingModel` took over the loop's inner lines. A test after each change showed
the same losses as before. `deviceIterations` and `replicationFactor` then used more of the
machine, without a change to the network. The weights went into a plain file of PyTorch. A
script for Keras took `IPUConfig`, `IPUStrategy` and `steps_per_execution`.

- `image_classification/image_classification.ipynb` has the whole workflow around a model
- `tensor_inspection/tensor_inspection.ipynb` looks into a model that goes wrong
- [The migration guide](../../docs/migrating.md) lists what else may have to change
"""
