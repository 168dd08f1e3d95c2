"""The package `keras` of a program for the IPU: Keras 2.6 made of tf_keras."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import keras as keras_of_2_6
import pytest
import tensorflow as tf
from tensorflow.python import ipu

from tensorflow_ipu.keras_layout.names import ADDED, MOVED, targets_of
from tensorflow_ipu.keras_layout.proxy import Proxy

__all__ = ["ipu"]  # this file is one of a program for the IPU

keras: Any = keras_of_2_6


@pytest.mark.parametrize("name", sorted(MOVED))
def test_every_module_of_the_table_exists(name: str) -> None:
    module = importlib.import_module(name)
    assert isinstance(module, ModuleType)
    assert [t for t in MOVED[name] if importlib.import_module(t) is None] == []


@pytest.mark.parametrize("name", sorted(set(ADDED) - {"tensorflow.keras"}))
def test_every_added_name_is_found(name: str) -> None:
    module = importlib.import_module(name)
    assert [each for each in ADDED[name] if not hasattr(module, each)] == []


def test_a_class_has_one_identity() -> None:
    training = importlib.import_module("keras.engine.training")
    twin = importlib.import_module("tensorflow.keras")
    assert keras.Model is tf.keras.Model is training.Model is twin.Model
    assert keras.layers.Dense is tf.keras.layers.Dense


@pytest.mark.parametrize(
    "name",
    ["keras.engine.base_layer", "keras.optimizer_v2.adam", "keras.saving.save"],
)
def test_a_module_that_is_one_of_tf_keras_is_that_module(name: str) -> None:
    (target,) = targets_of(name)
    assert importlib.import_module(name) is importlib.import_module(target)


def test_names_are_found_in_every_way() -> None:
    from keras.optimizer_v2 import gradient_descent, learning_rate_schedule
    from keras.optimizer_v2.optimizer_v2 import OptimizerV2

    assert keras.optimizer_v2.gradient_descent is gradient_descent
    assert keras.optimizer_v2.OptimizerV2 is OptimizerV2
    assert issubclass(learning_rate_schedule.ExponentialDecay, object)
    assert keras.layers.wrappers.TimeDistributed is keras.layers.TimeDistributed


def test_recurrent_layers_of_both_generations() -> None:
    former = importlib.import_module("keras.layers.recurrent").LSTM
    assert (
        keras.layers.LSTM is importlib.import_module("keras.layers.recurrent_v2").LSTM
    )
    assert former is not keras.layers.LSTM


def test_a_star_imports_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from keras.layers import *", names)
    assert names["Conv2D"] is tf.keras.layers.Conv2D


def test_an_unknown_name_is_missed() -> None:
    assert isinstance(keras, Proxy)
    with pytest.raises(AttributeError, match=r"'keras\.layers' has no attribute 'Foo'"):
        _ = keras.layers.Foo
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("keras.optimizer_v3")


def test_keras_ipu_is_one_package_under_all_its_names() -> None:
    served = importlib.import_module("keras.ipu")
    assert keras.ipu is tf.keras.ipu is served
    for name in ("tensorflow.keras.ipu", "tensorflow.python.ipu.keras"):
        assert importlib.import_module(name) is served
    assert ipu.keras is served


def test_data_sets_are_where_tensorflow_2_6_had_them() -> None:
    former = importlib.import_module("tensorflow.python.keras.datasets.mnist")
    assert former is importlib.import_module("keras.datasets.mnist")


def test_versions_are_those_of_tf_keras() -> None:
    tf_keras = importlib.import_module("tf_keras")
    assert tf.keras.__version__ == keras.__version__ == tf_keras.__version__
