"""Keras: a CNN under IPUStrategy, with a report of what its training would cost.

`steps_per_execution` says how many steps run on the IPU for each call of the host, and
gradient accumulation how many of them make one update of the weights. The options of
the configuration ask for the report.
"""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow import keras
from tensorflow.python import ipu

import popple
from popple.report import summarize

BATCH_SIZE = 8
STEPS_PER_EXECUTION = 32


def configure(report_directory):
    """One IPU, and a report of every program that is compiled for it."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.compilation_poplar_options = {
        "autoReport.all": "true",
        "autoReport.directory": str(report_directory),
    }
    config.configure_ipu_system()


def make_model():
    """To be called in the scope of the strategy."""
    model = keras.Sequential(
        [
            keras.layers.Conv2D(16, 3, activation="relu", input_shape=(8, 8, 1)),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(0.01),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        steps_per_execution=STEPS_PER_EXECUTION,
    )
    model.set_gradient_accumulation_options(
        gradient_accumulation_steps_per_replica=4,
        gradient_accumulation_reduction_method="mean",
    )
    return model


def load_data():
    """Training and test set, each a whole number of executions."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = tf.constant(digits.images[order, :, :, None] / 16, tf.float32)
    labels = tf.constant(digits.target[order], tf.int32)
    train, test = slice(0, 1536), slice(1536, 1792)
    return (images[train], labels[train]), (images[test], labels[test])


def print_report(path):
    """How long one execution takes, and what for; `popple report DIR` says more."""
    with popple.open_report(path) as report:
        run = summarize(report).run
        print(f"{run.samples_per_second:,.0f} images/s on a Bow IPU")
        for part in popple.explain(report).parts[:3]:
            kind = part.operation.kind
            print(f"  {part.share:.0%} {kind}, bound by {part.bound_by}")


def main():
    tf.random.set_seed(0)
    train, test = load_data()
    with tempfile.TemporaryDirectory() as directory:
        configure(directory)
        with ipu.ipu_strategy.IPUStrategy().scope():
            model = make_model()
            history = model.fit(*train, batch_size=BATCH_SIZE, epochs=4, verbose=0)
            for epoch, loss in enumerate(history.history["loss"], start=1):
                print(f"epoch {epoch}: loss {loss:.2f}")
            _, accuracy = model.evaluate(*test, batch_size=BATCH_SIZE, verbose=0)
            print(f"test accuracy: {accuracy:.1%}")
        # Two programs were compiled, one for training and one for the test.
        paths = sorted(Path(directory).glob("*/profile.pop"))
        print(f"reports: {len(paths)}")
        print_report(paths[0])


if __name__ == "__main__":
    main()
