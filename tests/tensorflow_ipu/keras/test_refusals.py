"""What a model in a strategy refuses to run, and what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tests.tensorflow_ipu.keras.keras_models import (  # noqa: E402
    X,
    Y,
    compiled,
    dense,
    functional,
    sequential,
    strategy,
)

pytestmark = pytest.mark.usefixtures("own_pod")

QUIET = {"batch_size": 4, "verbose": 0}


def test_eager_models_are_refused() -> None:
    with strategy().scope():
        model = compiled(sequential(), run_eagerly=True)
        with pytest.raises(RuntimeError, match="cannot run eagerly"):
            model.fit(X, Y, **QUIET)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("make_train_function", "fit"),
        ("make_test_function", "evaluate"),
        ("make_predict_function", "predict"),
    ],
)
def test_functions_of_ones_own_are_refused(name: str, method: str) -> None:
    own = type("Own", (tf.keras.Sequential,), {name: lambda self, *args: None})
    with strategy().scope():
        model = compiled(own([dense(1)]))
        data = [X] if method == "predict" else [X, Y]
        with pytest.raises(RuntimeError, match=f"The function `{name}`"):
            getattr(model, method)(*data, **QUIET)


def test_accumulation_passes_by_a_train_step_of_ones_own() -> None:
    own = type("Own", (tf.keras.Sequential,), {"train_step": lambda self, data: {}})
    with strategy().scope():
        model = compiled(own([dense(1)]), 2)
        model.set_gradient_accumulation_options(2)
        with pytest.raises(RuntimeError, match="The function `train_step`"):
            model.fit(X, Y, **QUIET)


@pytest.mark.parametrize("name", ["test_step", "call"])
def test_a_pipeline_passes_by_steps_of_ones_own(name: str) -> None:
    own = type("Own", (tf.keras.Sequential,), {name: lambda self, x, **kwargs: x})
    with strategy(2).scope():
        model = compiled(own([dense(1), dense(1)]))
        model.set_pipeline_stage_assignment([0, 1])
        with pytest.raises(RuntimeError, match=f"The function `{name}`"):
            model.evaluate(X, Y, **QUIET)


def test_a_subclass_must_have_a_call() -> None:
    with strategy().scope():
        model = compiled(type("Empty", (tf.keras.Model,), {})())
        with pytest.raises(NotImplementedError, match="The function `call`"):
            model.predict(X, **QUIET)


def test_accumulation_divides_an_execution() -> None:
    with strategy().scope():
        model = compiled(sequential(), 4)
        model.set_gradient_accumulation_options(3)
        with pytest.raises(RuntimeError, match=r"\(set to 4\) .* \(3\)"):
            model.fit(X, Y, **QUIET)


def test_training_a_pipeline_needs_accumulation() -> None:
    with strategy(2).scope():
        model = compiled(sequential(), 4)
        model.set_pipeline_stage_assignment([0, 1])
        with pytest.raises(ValueError, match="has not been set through"):
            model.fit(X, Y, **QUIET)


def test_stages_need_ipus() -> None:
    with strategy(1).scope():
        model = compiled(sequential(), 4)
        model.set_pipeline_stage_assignment([0, 1])
        with pytest.raises(ValueError, match="requires a multiple of 2 IPUs"):
            model.predict(X, **QUIET)


def test_a_minimize_of_ones_own_is_not_called_when_accumulating() -> None:
    class Own(tf.keras.optimizers.SGD):
        def minimize(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError

    with strategy().scope():
        model = sequential()
        model.compile(Own(), "mse", steps_per_execution=2)
        model.set_gradient_accumulation_options(2)
        with pytest.raises(ValueError, match="must not override"):
            model.fit(X, Y, **QUIET)


def test_weights_of_a_layer_lie_on_one_ipu() -> None:
    with strategy(2).scope():
        layer, inputs = dense(3), tf.keras.Input(3)
        model = compiled(tf.keras.Model(inputs, layer(layer(inputs))), 4)
        assignments = model.get_pipeline_stage_assignment()
        for stage, each in enumerate(assignments):
            each.pipeline_stage = stage
        model.set_pipeline_stage_assignment(assignments)
        with pytest.raises(ValueError, match="on the same IPU"):
            model.predict(X, **QUIET)


def test_a_gradient_that_is_missing_is_an_error() -> None:
    class Unused(tf.keras.layers.Layer):
        def build(self, _: Any) -> None:
            self.weight = self.add_weight("unused", [1])

        def call(self, x: Any) -> Any:
            return x

    with strategy().scope():
        model = compiled(tf.keras.Sequential([dense(1), Unused()]))
        with pytest.raises(ValueError, match="has `None` for gradient"):
            model.fit(X, Y, **QUIET)


def test_integers_of_64_bits_are_refused() -> None:
    with strategy().scope():
        model = compiled(functional())
        with pytest.raises(tf.errors.FailedPreconditionError, match="int64"):
            model.fit(X, np.ones([32, 1], np.int64), **QUIET)
