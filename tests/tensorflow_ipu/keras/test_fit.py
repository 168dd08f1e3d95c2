"""Training on the device equals training as it is defined, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

from tests.tensorflow_ipu.keras.keras_models import (  # noqa: E402
    RATE,
    Subclassed,
    X,
    Y,
    assert_weights,
    batches_of,
    compiled,
    dense,
    functional,
    sequential,
    strategy,
    weights_after,
)

pytestmark = pytest.mark.usefixtures("own_pod")

QUIET = {"batch_size": 4, "shuffle": False, "verbose": 0}


@pytest.mark.parametrize("make", [sequential, functional, Subclassed])
@pytest.mark.parametrize("steps", [1, 4])
def test_every_batch_is_an_update(make: Any, steps: int) -> None:
    with strategy().scope():
        model = compiled(make(), steps)
        model.fit(X, Y, epochs=2, **QUIET)
    assert_weights(model, weights_after(batches_of(4) * 2, 1))


# Eight batches of four: gradients of two batches each make four updates.
@pytest.mark.parametrize(
    ("method", "scale"), [("sum", 1.0), ("mean", 0.5), ("running_mean", 0.5)]
)
def test_gradients_accumulate(method: str, scale: float) -> None:
    with strategy().scope():
        model = compiled(sequential(), 8)
        model.set_gradient_accumulation_options(2, method)
        model.fit(X, Y, **QUIET)
    assert_weights(model, weights_after(batches_of(4), 2, scale))


def test_gradients_of_replicas_are_added() -> None:
    with strategy(2).scope():
        model = compiled(functional(), 2)
        model.fit(X, Y, **QUIET)
    assert_weights(model, weights_after(batches_of(4), 2))


def test_replicas_accumulate_too() -> None:
    with strategy(2).scope():
        model = compiled(Subclassed(), 4)
        model.set_gradient_accumulation_options(2, "sum")
        model.fit(X, Y, **QUIET)
    assert_weights(model, weights_after(batches_of(4), 4))


def pipelined(model: Any, accumulation: int = 4, **options: Any) -> Any:
    if isinstance(model, tf.keras.Sequential):
        model.set_pipeline_stage_assignment([0, 1])
    else:
        model.build((4, 3))
        assignments = model.get_pipeline_stage_assignment()
        for stage, assignment in enumerate(assignments):
            assignment.pipeline_stage = stage
        model.set_pipeline_stage_assignment(assignments)
    model.set_pipelining_options(accumulation, **options)
    return model


@pytest.mark.parametrize("make", [sequential, functional, Subclassed])
def test_a_pipeline_computes_what_its_layers_do(make: Any) -> None:
    with strategy(2).scope():
        model = compiled(pipelined(make()), 8)
        model.fit(X, Y, **QUIET)
    assert_weights(model, weights_after(batches_of(4), 4))


def test_a_pipeline_has_replicas() -> None:
    with strategy(4).scope():
        model = compiled(pipelined(functional()), 4)
        model.fit(X, Y, **QUIET)
        outputs = model.predict(X, batch_size=4)
    # Two replicas of two stages: four batches each make the only update.
    assert_weights(model, weights_after(batches_of(4), 8))
    np.testing.assert_allclose(outputs, model(X), rtol=1e-5)


def test_weights_of_samples_weigh_the_loss() -> None:
    weights = np.tile([1.0, 0.0, 2.0, 0.0], 8).astype(np.float32)
    with strategy().scope():
        model = compiled(sequential(), 8)
        model.fit(X, Y, sample_weight=weights, **QUIET)
    stock = compiled(sequential())
    stock.fit(X, Y, sample_weight=weights, **QUIET)
    assert_weights(model, stock.get_weights())


def test_single_numbers_are_columns() -> None:
    with strategy().scope():
        model = compiled(tf.keras.Sequential([dense(1)]), 8)
        model.fit(X[:, 0], Y[:, 0], **QUIET)
    assert model.weights[0].shape == (1, 1)


def test_an_optimiser_of_tensorflow_1_trains() -> None:
    with strategy(2).scope():
        model = functional()
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(RATE)
        model.compile(optimizer, "mse", steps_per_execution=4)
        model.fit(X, Y, **QUIET)
    assert_weights(model, weights_after(batches_of(4), 2))


def mixed(initial_scale: float) -> Any:
    """A model trained with a first layer in half precision, and a scaled loss."""
    policy = tf.keras.mixed_precision.Policy("mixed_float16")
    model = tf.keras.Sequential([dense(2, dtype=policy), dense(1, dtype="float32")])
    inner = tf.keras.optimizers.SGD(RATE)
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(
        inner, initial_scale=initial_scale
    )
    model.compile(optimizer, "mse", steps_per_execution=8)
    model.fit(X, Y, **QUIET)
    return model


def test_mixed_precision_scales_the_loss() -> None:
    with strategy().scope():
        model = mixed(256)
    expected = weights_after(batches_of(4), 1)
    np.testing.assert_allclose(model.get_weights()[2], expected[2], atol=1e-3)


def test_an_update_whose_gradients_overflow_is_skipped() -> None:
    # Without NaNs half precision saturates, and there is nothing to skip.
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.floating_point_behaviour.nanoo = True
    config.configure_ipu_system()
    with ipu.ipu_strategy.IPUStrategy().scope():
        model = mixed(2**15)
    assert float(model.optimizer.loss_scale) == 2**14
    # The first batch overflows in half precision, the others do not.
    expected = weights_after(batches_of(4)[1:], 1)
    np.testing.assert_allclose(model.get_weights()[2], expected[2], atol=1e-3)


def test_a_schedule_counts_updates() -> None:
    rates = tf.keras.optimizers.schedules.PiecewiseConstantDecay([1], [RATE, 0.0])
    with strategy().scope():
        model = sequential()
        optimizer = tf.keras.optimizers.SGD(rates)
        model.compile(optimizer, "mse", steps_per_execution=8)
        model.fit(X, Y, **QUIET)
    # The rate is zero from the third update on.
    assert_weights(model, weights_after(batches_of(4)[:2], 1))
