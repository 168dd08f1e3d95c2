# %% [markdown]
"""
Copyright (c) 2026 Popple contributors. All rights reserved.
"""

# %% [markdown]
"""
# Image Classification on IPUs using a CNN - Training with PopTorch
"""

# %% [markdown]
"""
| Domain | Tasks | Model | Datasets | Workflow | Number of IPUs | Execution time |
|---|---|---|---|---|---|---|
| Vision | Image classification | CNN | Handwritten digits | Training, evaluation, inference | recommended: 16 (min: 1) | 1 min |
"""

# %% [markdown]
"""
Sorting images into classes is the first step of many products, from reading forms to
finding faults. This notebook trains a small network that reads handwritten digits, and
shows how good it becomes within a minute. The training is spread over several processors
that each see a part of the data. Everything is prepared so that you can put in a
checkpoint or images of your own.

In this notebook you will learn how to:

- look at the data and their format
- train a network on several IPUs
- evaluate it on images that it has not seen
- save a checkpoint and load it again
- estimate the speed on a real machine

Training ends with inference on the test images. To speed up a script of your own, see
`porting/porting.ipynb`; every option is explained in [PopTorch programs](../../docs/poptorch.md).

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
The number of IPUs and the places of checkpoints and compiled programs come from the
environment:
"""

# %%
import os
import tempfile
from pathlib import Path

number_of_ipus = int(os.getenv("NUM_AVAILABLE_IPU", 16))
executable_cache_dir = os.getenv("POPLAR_EXECUTABLE_CACHE_DIR", "/tmp/exe_cache/")
checkpoint_directory = os.getenv("CHECKPOINT_DIR") or tempfile.mkdtemp()

# %% [markdown]
"""
These are the values to experiment with:
"""

# %% tags=["parameters"]
epochs = 3  # how often the training images are seen
batch_size = 16  # images that one IPU sees at a time
learning_rate = 4e-3  # how far each update goes

# %% [markdown]
"""
## Look at the data and their format

`load_data` returns images with values between 0 and 1, one channel of 8 x 8 pixels, and
labels from 0 to 9. Whatever has this format can take their place.
"""

# %%
import matplotlib.pyplot as plt
from api import Digits, load_data

images, labels = load_data()
print(tuple(images.shape), images.dtype, tuple(labels.shape), labels.dtype)

figure, axes = plt.subplots(1, 8, figsize=(8, 1.4))
for axis, image, label in zip(axes, images, labels):
    axis.imshow(image[0], cmap="gray_r")
    axis.set_title(int(label))
    axis.axis("off")
plt.show()

# %% [markdown]
"""
## Train a network on several IPUs

`Digits` is the application in `api.py`: a network, its optimiser and the four things that
you can do with any application here. Each IPU holds a copy of the network and sees a part of
every batch; their gradients are averaged, so all copies stay equal.
"""

# %%
replicas = min(number_of_ipus, 4)
application = Digits(replicas, batch_size, learning_rate, executable_cache_dir)
losses = application.train(epochs)
application

# %%
plt.figure(figsize=(4, 2.5))
plt.plot(range(1, epochs + 1), losses, marker="o")
plt.xlabel("epoch")
plt.ylabel("mean loss")
plt.title("Training")
plt.show()

# %% [markdown]
"""
## Evaluate it on images that it has not seen

360 images were kept apart. First the number, then the images that are read wrongly: a
look at them says more than the number.
"""

# %%
metrics = application.evaluate()
print(f"accuracy: {metrics['accuracy']:.1%}")

# %%
test_images, test_labels = application.test_set
read = application.predict(test_images)
wrong = (read != test_labels).nonzero().flatten()[:6].tolist()
figure, axes = plt.subplots(1, 6, figsize=(8, 1.8))
for axis in axes:
    axis.axis("off")
for axis, index in zip(axes, wrong):
    axis.imshow(test_images[index, 0], cmap="gray_r")
    axis.set_title(f"{int(test_labels[index])} read as {int(read[index])}", fontsize=8)
plt.show()

# %% [markdown]
"""
## Save a checkpoint and load it again

A checkpoint is a file of PyTorch: it can be loaded without an IPU, too. To change the
checkpoint, name another file; to change the data, call `application.change_dataset`.
"""

# %%
checkpoint = Path(checkpoint_directory) / "digits.pt"
application.save_checkpoint(checkpoint)
again = Digits()
again.change_checkpoint(checkpoint)
print(f"accuracy of the loaded network: {again.evaluate()['accuracy']:.1%}")
again.close()

# %% [markdown]
"""
## Estimate the speed on a real machine

Popple computes values on your computer and models what the same program costs on the chip.
For a network this small most of the time goes into moving data and starting programs.
"""

# %%
import popple

popple.modelled(application.training_model)

# %% [markdown]
"""
At the end the IPUs are given back, since the kernel lives on:
"""

# %%
application.close()

# %% [markdown]
"""
## Conclusions and next steps

You trained a network with `poptorch.trainingModel` on several IPUs, each with a copy
of it, by one option: `replicationFactor`. You tested it on images it had not seen with
`poptorch.inferenceModel`, saved it with `save_checkpoint` and loaded it again. The model of
the machine, `popple.modelled`, told you what to expect of hardware.

- `porting/porting.ipynb` starts from a script for a GPU
- `will_it_fit/will_it_fit.ipynb` asks how large a model may become
- [PopTorch programs](../../docs/poptorch.md) lists every option and what becomes of it
"""
