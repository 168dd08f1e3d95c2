"""How long it takes to capture and model a Keras training step.

    python benchmarks/keras_capture.py [--only TEXT] [--batch 8]

Tracing is TensorFlow's own time, and a program that runs spends it anyway; capturing
(TensorFlow's graph to Popple's) and modelling (placing, planning, simulating) come only
when a report or the model is asked for. The limits are 2 s for the CNN and 15 s for
ResNet-50, tracing left out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import tf_keras as keras

from popple.capture.tensorflow import LoweredProgram, LowerRequest, lower_program
from popple.options import ModelOptions, UpdateOptions
from popple.pipeline import Modelled, model_graph
from popple.target import Target, load_system

Case = tuple[Callable[[], Any], tuple[int, ...], Any]
layers = keras.layers


def cnn() -> Any:
    """The usual CNN for 28 x 28 images."""
    return keras.Sequential(
        [
            layers.Conv2D(32, 5, activation="relu", input_shape=(28, 28, 1)),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(128, "relu"),
            layers.Dense(10),
        ]
    )


def mlp() -> Any:
    """Four fully connected layers."""
    hidden = [layers.Dense(256, "relu") for _ in range(3)]
    return keras.Sequential([keras.Input((784,)), *hidden, layers.Dense(10)])


def transformer() -> Any:
    """Four encoder layers of width 256."""
    tokens = keras.Input((128,), dtype=tf.int32)
    x = layers.Embedding(8000, 256)(tokens)
    for _ in range(4):
        attended = layers.MultiHeadAttention(4, 64, dropout=0.1)(x, x)
        x = layers.LayerNormalization()(x + attended)
        hidden = layers.Dense(1024, "gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(256)(hidden))
    return keras.Model(tokens, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def resnet50() -> Any:
    """ResNet-50 for 224 x 224 images."""
    return keras.applications.ResNet50(weights=None, classifier_activation=None)


CASES: dict[str, Case] = {
    "CNN": (cnn, (28, 28, 1), tf.float32),
    "MLP": (mlp, (784,), tf.float32),
    "transformer": (transformer, (128,), tf.int32),
    "ResNet-50": (resnet50, (224, 224, 3), tf.float32),
}


def trace(model: Any, case: Case, batch: int) -> Any:
    """The traced training step of a model."""
    _, shape, dtype = case
    optimizer = keras.optimizers.legacy.SGD(0.1, momentum=0.9)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(x, training=True))
        weights = model.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    inputs = tf.TensorSpec((batch, *shape), dtype)
    return step.get_concrete_function(inputs, tf.TensorSpec((batch,), tf.int32))


def model_step(lowered: LoweredProgram) -> Modelled:
    """The captured step, placed, planned and simulated."""
    assert lowered.update is not None
    update = UpdateOptions(*lowered.update, lowered.gradients)
    options = ModelOptions(micro_batch=lowered.micro_batch, update=update)
    return model_graph(lowered.graph, Target(load_system("bow-pod16"), 1, 1), options)


def main() -> None:
    """Print a table of times and modelled costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--batch", type=int, default=8)
    arguments = parser.parse_args()
    print(
        f"{'program':12} {'trace':>8} {'capture':>8} {'model':>8} {'ops':>6}", end=" "
    )
    print(f"{'generic':>8} {'Gflop':>8} {'Mcycles':>8}")
    for name, case in CASES.items():
        if arguments.only.lower() not in name.lower():
            continue
        model = case[0]()
        times = [time.perf_counter()]
        concrete = trace(model, case, arguments.batch)
        times.append(time.perf_counter())
        lowered = lower_program(LowerRequest(name, concrete.graph))
        times.append(time.perf_counter())
        modelled = model_step(lowered)
        times.append(time.perf_counter())
        spent = [after - before for before, after in itertools.pairwise(times)]
        cost = modelled.simulation.cost
        print(f"{name:12} " + " ".join(f"{each:6.2f} s" for each in spent), end=" ")
        print(f"{len(lowered.graph.ops):6}", end=" ")
        print(f"{sum(modelled.planned.generic_ops.values()):8}", end=" ")
        print(f"{cost.flops / 1e9:8.2f} {cost.cycles / 1e6:8.2f}", flush=True)


if __name__ == "__main__":
    main()
