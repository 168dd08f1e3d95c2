"""TensorFlow's layers cost what PyTorch's do."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf
import tf_keras as keras

from popple.capture.tensorflow import LoweredProgram
from tests.capture.shared_layers import NAMES, cost_of, read_shared
from tests.capture.tensorflow.tracing import ints, lower, spec


def make(name: str) -> LoweredProgram:
    layers = keras.layers
    if name == "dense":
        model = keras.Sequential([layers.Dense(256, "relu"), layers.Dense(10)])
        return trained(model, (16, 784))
    model = keras.Sequential(
        [
            layers.Conv2D(32, 5),
            layers.MaxPooling2D(),
            layers.ReLU(),
            layers.Conv2D(64, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )
    return trained(model, (16, 28, 28, 3))


def trained(model: Any, shape: tuple[int, ...]) -> LoweredProgram:
    model.build(shape)
    optimizer = keras.optimizers.legacy.SGD(0.1)

    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        weights = model.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    return lower(step, spec(*shape), ints(shape[0]))


@pytest.mark.parametrize("name", NAMES)
def test_layers_cost_what_they_cost_in_pytorch(name: str) -> None:
    ours, theirs = cost_of(make(name).graph), cost_of(read_shared(name))
    assert ours.work == theirs.work
    # The first op that reads a gradient decides how it lies; orders differ.
    assert ours.cycles == pytest.approx(theirs.cycles, rel=0.03)
