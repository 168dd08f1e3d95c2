# %% [markdown]
"""
Copyright (c) 2026 Popple contributors. All rights reserved.
"""

# %% [markdown]
"""
# Handwriting Recognition on IPUs using a Sharded Graph - Training with TensorFlow 1
"""

# %% [markdown]
"""
| Domain | Tasks | Model | Datasets | Workflow | Number of IPUs | Execution time |
|---|---|---|---|---|---|---|
| Vision | Image classification | MLP on two processors | Handwritten digits | Training, evaluation | recommended: 4 (min: 4) | 1 min |
"""

# %% [markdown]
"""
Much production code still builds a graph first and runs it in a session later. This notebook
explains graph, session and device with a program of a few lines, and ends with one that trains.
A model that is too large for one processor is cut into parts, each on a processor of its own.
Data flow in and results flow out while the program loops, so that nobody waits for Python.

In this notebook you will learn how to:

- build a graph and run it in a session
- compile the graph as one program
- shard a graph over four IPUs
- train in a loop with queues
- evaluate what was trained

After training, inference is the same graph without its optimiser. The three words are
explained in [graphs, sessions and devices](../../docs/graphs_and_sessions.md).

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

number_of_ipus = int(os.getenv("NUM_AVAILABLE_IPU", 16))

# %% [markdown]
"""
These are the values to experiment with:
"""

# %% tags=["parameters"]
batch_size = 28  # images in a batch
steps_per_run = 64  # batches that one run of the program sees
num_runs = 8  # runs of the program
learning_rate = 0.2  # how far each update goes

# %% [markdown]
"""
## Build a graph and run it in a session

Placeholders stand on the CPU, and what the IPU computes stands in `ipu_scope`. Nothing is
computed until the session runs. `auto_select_ipus` asks for IPUs that are free; the device
`/device:IPU:0` is whichever the program got.
"""

# %%
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()


def configure(count):
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = count
    config.configure_ipu_system()


configure(min(number_of_ipus, 1))
with tf.Graph().as_default():
    with tf.device("cpu"):
        a, b, c = (tf.placeholder(np.float32, [2], name=name) for name in "abc")
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        result = a + b + c
    feeds = {a: [1, 1], b: [0, 3], c: [2, 4]}
    with tf.Session() as session:
        print(session.run(result, feeds))

# %% [markdown]
"""
## Compile the graph as one program

`ipu_compiler.compile` makes one program of everything in a function. Shapes have to be known,
and in return nothing goes back to the host between two operations.
"""


# %%
def add(a, b, c):
    return a + b + c


with tf.Graph().as_default():
    with tf.device("cpu"):
        a, b, c = (tf.placeholder(np.float32, [2], name=name) for name in "abc")
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        (compiled,) = ipu.ipu_compiler.compile(add, [a, b, c])
    with tf.Session() as session:
        print(session.run(compiled, {a: [1, 1], b: [0, 3], c: [2, 4]}))

# %% [markdown]
"""
## Shard a graph over four IPUs

`ipu_shard` says on which IPU of the device an operation runs. Three IPUs add, and the fourth
adds what they found. Four IPUs together have an id of their own, which the log shows.
"""


# %%
def sharded(a, b, c):
    with ipu.scopes.ipu_shard(0):
        first = a + b
    with ipu.scopes.ipu_shard(1):
        second = a + c
    with ipu.scopes.ipu_shard(2):
        third = b + c
    with ipu.scopes.ipu_shard(3):
        return first + second + third


ipu.config.reset_ipu_configuration()
configure(min(number_of_ipus, 4))
with tf.Graph().as_default():
    with tf.device("cpu"):
        a, b, c = (tf.placeholder(np.float32, [2], name=name) for name in "abc")
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        (total,) = ipu.ipu_compiler.compile(sharded, [a, b, c])
    with tf.Session() as session:
        print(session.run(total, {a: [1, 1], b: [0, 3], c: [2, 4]}))

# %% [markdown]
"""
## Train in a loop with queues

The network has two layers, each on an IPU of its own. An infeed brings batches, the loop runs
on the device, and an outfeed takes the losses away. Variables are resource variables, and
their first values are made on the CPU.
"""

# %%
from sklearn.datasets import load_digits

digits = load_digits()
pixels = (digits.data / 16).astype("float32")
labels = digits.target.astype("int32")
num_train = 1400

ipu.config.reset_ipu_configuration()
configure(min(number_of_ipus, 2))


def dense(x, size, name):
    with tf.variable_scope(name, use_resource=True, reuse=tf.AUTO_REUSE):
        weights = tf.get_variable("weights", [x.shape[1], size])
        bias = tf.get_variable("bias", [size], initializer=tf.zeros_initializer())
        return tf.matmul(x, weights) + bias


def network(images):
    with ipu.scopes.ipu_shard(0):
        hidden = tf.nn.relu(dense(images, 256, "first"))
    with ipu.scopes.ipu_shard(1):
        return dense(hidden, 10, "second")


def make_step(outfeed):
    def step(images, wanted):
        logits = network(images)
        with ipu.scopes.ipu_shard(1):
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=wanted, logits=logits
            )
            loss = tf.reduce_mean(losses)
        descent = tf.train.GradientDescentOptimizer(learning_rate)
        train = ipu.optimizers.ShardedOptimizer(descent).minimize(loss)
        with tf.control_dependencies([train]):
            return outfeed.enqueue(loss)

    return step


# %% [markdown]
"""
The graph is built once: the loop, the queues, and beside them the network for evaluation.
"""

# %%
graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(0)
    data = tf.data.Dataset.from_tensor_slices((pixels[:num_train], labels[:num_train]))
    data = data.batch(batch_size, drop_remainder=True).repeat()
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    step = make_step(outfeed)

    def loop():
        return ipu.loops.repeat(steps_per_run, step, infeed_queue=infeed)

    with tf.device("cpu"):
        others = tf.placeholder(np.float32, [len(pixels) - num_train, 64])
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        program = ipu.ipu_compiler.compile(loop)
        (predicted,) = ipu.ipu_compiler.compile(network, [others])
    dequeued = outfeed.dequeue()
    ipu.utils.move_variable_initialization_to_cpu()
    initialise = tf.global_variables_initializer()

session = tf.Session(graph=graph)
session.run(initialise)
session.run(infeed.initializer)
losses = []
for _ in range(num_runs):
    session.run(program)
    losses.extend(session.run(dequeued))
print(f"{len(losses)} losses, from {losses[0]:.2f} to {np.mean(losses[-50:]):.2f}")

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 2.5))
plt.plot(losses, linewidth=0.8)
for run in range(1, num_runs):
    plt.axvline(run * steps_per_run, color="grey", linestyle=":", linewidth=0.8)
plt.xlabel("step; dotted: where the host came in")
plt.ylabel("loss")
plt.show()

# %% [markdown]
"""
## Evaluate what was trained

The same variables, in a graph without an optimiser, on images that were kept apart.
"""


# %%
def evaluate(logits, wanted):
    return float((logits.argmax(axis=1) == wanted).mean())


logits = session.run(predicted, {others: pixels[num_train:]})
print(f"accuracy: {evaluate(logits, labels[num_train:]):.1%}")

# %% [markdown]
"""
At the end the IPUs are given back, since the kernel lives on:
"""

# %%
session.close()
ipu.config.reset_ipu_configuration()

# %% [markdown]
"""
## Conclusions and next steps

You built graphs, placed them with `ipu_scope` and made each one program with
`ipu_compiler.compile`. `ipu_shard` cut a network in two, and `ShardedOptimizer` let gradients
follow their operations. A loop with `IPUInfeedQueue` and `IPUOutfeedQueue` trained without
coming back to the host. The same variables then served a graph for evaluation.

- `tensor_inspection/tensor_inspection.ipynb` uses queues to look inside a Keras model
- [Graphs, sessions and devices](../../docs/graphs_and_sessions.md) explains the three words
- [Machines, pods and partitions](../../docs/pods.md) says how ids of IPUs are given
"""
