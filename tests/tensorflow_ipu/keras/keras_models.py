"""Models and data that the tests of keras.ipu share: small, and the same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=[32, 3]).astype(np.float32)
Y = RANDOM.normal(size=[32, 1]).astype(np.float32)
RATE = 0.05


def strategy(num_ipus: int = 1) -> ipu.ipu_strategy.IPUStrategy:
    """A strategy on a device of so many IPUs."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy()


def dense(units: int, **kwargs: Any) -> Any:
    return tf.keras.layers.Dense(units, kernel_initializer="ones", **kwargs)


def sequential() -> Any:
    return tf.keras.Sequential([dense(2), dense(1)])


def functional() -> Any:
    inputs = tf.keras.Input(3)
    return tf.keras.Model(inputs, dense(1)(dense(2)(inputs)))


class Subclassed(tf.keras.Model):
    """The same two layers, as code."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = dense(2), dense(1)

    def call(self, inputs: Any) -> Any:
        return self.second(self.first(inputs))


def compiled(model: Any, steps: int = 1, **kwargs: Any) -> Any:
    optimizer = tf.keras.optimizers.SGD(RATE)
    model.compile(optimizer, "mse", steps_per_execution=steps, **kwargs)
    return model


def weights_after(
    batches: list[tuple[Any, Any]], per_update: int, scale: float = 1.0
) -> list[Any]:
    """The weights after gradient descent as it is defined.

    Gradients of `per_update` batches are added, multiplied by `scale` and applied.
    """
    kernels = [tf.Variable(tf.ones([3, 2])), tf.Variable(tf.ones([2, 1]))]
    biases = [tf.Variable(tf.zeros([2])), tf.Variable(tf.zeros([1]))]
    weights = [kernels[0], biases[0], kernels[1], biases[1]]
    for start in range(0, len(batches), per_update):
        with tf.GradientTape() as tape:
            loss = tf.add_n(
                [
                    tf.reduce_mean((_forward(x, weights) - y) ** 2)
                    for x, y in batches[start : start + per_update]
                ]
            )
        gradients: Any = tape.gradient(loss, weights)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(RATE * scale * gradient)
    return [weight.numpy() for weight in weights]


def _forward(x: Any, weights: list[Any]) -> Any:
    hidden = x @ weights[0] + weights[1]
    return hidden @ weights[2] + weights[3]


def batches_of(size: int) -> list[tuple[Any, Any]]:
    """The data in batches, in order."""
    return [(X[i : i + size], Y[i : i + size]) for i in range(0, len(X), size)]


def assert_weights(model: Any, expected: list[Any]) -> None:
    for weight, value in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(weight, value, rtol=1e-5, atol=1e-6)
