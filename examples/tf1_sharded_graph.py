"""TensorFlow 1: a graph on two IPUs, fed and emptied by queues while it loops.

The program is built first and run in a session later. `ipu_scope` places it on the IPU
and `ipu_shard` says on which of the two; gradients follow their operators. The loop
runs on the device: it reads batches from an infeed and leaves losses in an outfeed, and
the host comes back for them after 64 steps.
"""

import tempfile
from collections import Counter
from pathlib import Path

import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits
from tensorflow.python import ipu

import popple
from popple.report import operations

tf.disable_v2_behavior()

BATCH_SIZE = 28
STEPS_PER_RUN = 64


def configure(report_directory):
    """Two IPUs, and a report of the program."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.compilation_poplar_options = {
        "autoReport.all": "true",
        "autoReport.directory": str(report_directory),
    }
    config.configure_ipu_system()


def make_dataset():
    """Batches of digits without end; all have the same size."""
    digits = load_digits()
    pixels = (digits.data / 16).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices(
        (pixels, digits.target.astype("int32"))
    )
    return dataset.batch(BATCH_SIZE, drop_remainder=True).repeat()


def dense(x, size, name):
    """A fully connected layer with variables of its own."""
    with tf.variable_scope(name, use_resource=True):
        weights = tf.get_variable("weights", [x.shape[1], size])
        bias = tf.get_variable("bias", [size], initializer=tf.zeros_initializer())
        return tf.matmul(x, weights) + bias


def make_program(infeed, outfeed):
    """The operation that runs the loop once."""

    def step(pixels, labels):
        with ipu.scopes.ipu_shard(0):
            x = tf.nn.relu(dense(pixels, 256, "first"))
        with ipu.scopes.ipu_shard(1):
            logits = dense(x, 10, "second")
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=labels, logits=logits
                )
            )
        optimizer = ipu.optimizers.ShardedOptimizer(
            tf.train.GradientDescentOptimizer(0.2)
        )
        train = optimizer.minimize(loss)
        with tf.control_dependencies([train]):
            return outfeed.enqueue(loss)

    def loop():
        return ipu.loops.repeat(STEPS_PER_RUN, step, infeed_queue=infeed)

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(loop)


def print_report(path):
    """What each IPU works on, as the report of the program says."""
    with popple.open_report(path) as report:
        cycles = Counter()
        for operation in operations(report):
            part = "copies" if operation.kind == "chip_copy" else operation.chip
            cycles[part] += operation.cycles
        print(f"IPU 0 computes {cycles[0] / cycles.total():.0%} of the cycles")
        print(f"IPU 1 computes {cycles[1] / cycles.total():.0%} of the cycles")
        print(f"copies between them take {cycles['copies'] / cycles.total():.0%}")


def main():
    tf.set_random_seed(0)
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(make_dataset())
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    program = make_program(infeed, outfeed)
    losses = outfeed.dequeue()
    # Otherwise the first values of the variables are a program for the IPU too.
    ipu.utils.move_variable_initialization_to_cpu()
    with tempfile.TemporaryDirectory() as directory, tf.Session() as session:
        configure(directory)
        session.run(tf.global_variables_initializer())
        session.run(infeed.initializer)
        for run in range(4):
            session.run(program)
            found = session.run(losses)
            print(f"run {run + 1}: {len(found)} losses, mean {found.mean():.2f}")
        (path,) = Path(directory).glob("*/profile.pop")
        print_report(path)


if __name__ == "__main__":
    main()
