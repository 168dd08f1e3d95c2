"""What tf_keras does otherwise than Keras 2.6 did, and does not in these programs."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras.optimizer_v2.optimizer_v2 import OptimizerV2
from tensorflow.python import ipu

from tensorflow_ipu.keras_layout.behaviour import OPTIMIZER_CLASSES, expand_1d

__all__ = ["ipu"]  # this file is one of a program for the IPU

NAMES = [name for name, _, _ in OPTIMIZER_CLASSES]
FACES = ["tf_keras.optimizers", "tensorflow.keras.optimizers", "keras.optimizers"]


@pytest.mark.parametrize("face", FACES)
def test_public_optimisers_are_those_of_2_6(face: str) -> None:
    module = importlib.import_module(face)
    found = [getattr(module, name) for name in [*NAMES, "Optimizer"]]
    assert all(issubclass(each, OptimizerV2) for each in found)


@pytest.mark.parametrize("name", NAMES)
def test_names_mean_optimisers_of_2_6(name: str) -> None:
    assert isinstance(tf.keras.optimizers.get(name), getattr(tf.optimizers, name))


def test_a_learning_rate_may_decay() -> None:
    assert tf.keras.optimizers.Adam(decay=0.5).get_config()["decay"] == 0.5


def test_an_empty_configuration_is_an_optimiser_of_2_6() -> None:
    config = {"class_name": "SGD", "config": {}}
    optimizer = tf.keras.optimizers.deserialize(config, use_legacy_format=True)
    assert isinstance(optimizer, OptimizerV2)


def test_an_optimiser_imported_too_early_is_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    early = importlib.import_module("tf_keras.src.optimizers.sgd").SGD(0.25)
    logging.getLogger("tensorflow").propagate = True
    replaced = tf.keras.optimizers.get(early)
    assert isinstance(replaced, tf.keras.optimizers.SGD)
    assert float(replaced.learning_rate) == 0.25
    assert "imported before tensorflow.python.ipu" in caplog.text


def test_vectors_become_columns() -> None:
    data = (tf.zeros([4]), {"a": tf.zeros([4, 2])}, tf.zeros([]), None, np.zeros(3))
    shapes = [getattr(x, "shape", None) for x in tf.nest.flatten(expand_1d(data))]
    assert shapes == [(4, 1), (4, 2), (), None, (3,)]


def test_labels_do_not_broadcast() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False)])
    model.compile("sgd", lambda y, prediction: y - prediction)
    inputs, labels = np.ones((2, 1), "float32"), np.array([1, 3], "float32")
    model.build((2, 1))
    model.set_weights([np.zeros((1, 1), "float32")])
    # Column against column: (1 + 3) / 2; a row would broadcast to the same mean, but
    # to a loss of shape [2, 2].
    assert model.evaluate(inputs, labels, batch_size=2, verbose=0) == 2.0
    assert model.predict_step(tf.ones([5])).shape == (5, 1)


def test_steps_per_execution_may_be_a_tensor() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=tf.constant(3))
    assert int(model.steps_per_execution) == 3


def test_layers_have_the_methods_of_2_6() -> None:
    class Counted(tf.keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            self.add_update(tf.no_op, inputs=True)
            return inputs + 1

    layer: Any = Counted()
    assert float(layer.apply(tf.constant(1.0))) == 2.0
