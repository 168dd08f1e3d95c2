"""Whole models of Keras: captured without gaps, and modelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf
import tf_keras as keras

from popple.capture.tensorflow import LoweredProgram
from popple.graph import Role
from tests.capture.tensorflow.tracing import ints, lower, model_program, runs, spec

layers = keras.layers
Make = Callable[[], tuple[Any, tf.TensorSpec]]


def perceptron() -> tuple[Any, tf.TensorSpec]:
    model = keras.Sequential([layers.Dense(32, "relu"), layers.Dense(4)])
    return model, spec(8, 16)


def cnn() -> tuple[Any, tf.TensorSpec]:
    model = keras.Sequential(
        [
            layers.Conv2D(8, 3, activation="relu"),
            layers.SeparableConv2D(8, 3, padding="same"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(4),
        ]
    )
    return model, spec(8, 12, 12, 3)


def recurrent() -> tuple[Any, tf.TensorSpec]:
    model = keras.Sequential([layers.Embedding(30, 8), layers.LSTM(8), layers.Dense(4)])
    return model, ints(8, 5)


def walked() -> tuple[Any, tf.TensorSpec]:
    return keras.Sequential([layers.SimpleRNN(8), layers.Dense(4)]), spec(8, 5, 6)


def transformer() -> tuple[Any, tf.TensorSpec]:
    tokens = keras.Input((10,), 8, dtype=tf.int32)
    x = layers.Embedding(30, 16)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(16, "gelu")(x))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, layers.Dense(4)(x)), ints(8, 10)


def trained(make: Make) -> LoweredProgram:
    model, inputs = make()
    model.build(inputs.shape)
    optimizer = keras.optimizers.legacy.SGD(0.1, momentum=0.9)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(x, training=True))
        weights = model.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    return lower(step, inputs, ints(8))


@pytest.mark.parametrize("make", [perceptron, cnn, recurrent, transformer])
def test_training_steps_are_captured_without_gaps(make: Make) -> None:
    lowered = trained(make)
    weights = [value.name for value in lowered.graph.with_role(Role.WEIGHT)]
    assert sorted(lowered.gradients) == sorted(weights)
    assert lowered.remarks == ()
    modelled = model_program(lowered)
    assert modelled.planned.generic_ops == {}
    assert modelled.simulation.cost.flops > 0


def test_steps_through_time_that_keras_has_no_function_for_are_all_there() -> None:
    found = runs(trained(walked).graph)
    assert found["tanh"] == 5  # of the state, five times
    assert found["tanh_grad"] == 5


def test_weights_are_named_as_in_keras() -> None:
    names = {value.name for value in trained(perceptron).graph.with_role(Role.WEIGHT)}
    assert {name.rpartition("/")[2] for name in names} == {"kernel", "bias"}
