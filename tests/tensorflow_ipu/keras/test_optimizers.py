"""Optimisers of keras.ipu: automatic loss scaling and accumulation."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras.ipu.optimizers import (  # noqa: E402
    ALSGradientAccumulationOptimizer,
    ALSOptimizer,
    ALSOptimizerAdam,
    ALSOptimizerRMSProp,
    ALSOptimizerSGD,
    GradientAccumulationOptimizer,
)
from keras.ipu.optimizers.cross_replica_optimizer import (  # noqa: E402
    CrossReplicaOptimizer,
)
from tensorflow.python.ipu import loops  # noqa: E402

from tests.tensorflow_ipu.keras.keras_models import strategy  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")

SGD = tf.keras.optimizers.SGD


def scaling(inner: Any = None, **settings: Any) -> ALSOptimizer:
    return ALSOptimizer(inner or SGD(0.5), **settings)


def step(optimizer: Any, gradient: float, dtype: Any = tf.float16) -> Any:
    """Apply a gradient to a variable that is 1; what it becomes."""
    variable = tf.Variable(1.0, dtype=dtype)

    @tf.function
    def update() -> None:
        optimizer.apply_gradients([(tf.constant(gradient, dtype), variable)])

    update()
    return float(variable)


def test_gradients_are_divided_by_the_factor() -> None:
    optimizer = scaling(initial_loss_scaling_factor=4)
    assert float(optimizer.get_scaled_loss(tf.constant(2.0))) == 8.0
    # 1 - 0.5 * 8 / 4
    assert step(optimizer, 8.0) == 0.0


# Looked at in the third step: two steps make a period.
@pytest.mark.parametrize(("gradient", "factor"), [(1.0, 16.0), (60000.0, 4.0)])
def test_the_factor_follows_what_gradients_do(gradient: float, factor: float) -> None:
    optimizer = scaling(initial_loss_scaling_factor=8, update_frequency=2)
    for expected in (8.0, 8.0, factor):
        step(optimizer, gradient)
        assert float(optimizer.loss_scaling_factor) == expected
    assert float(optimizer.previous_loss_scaling_factor) == 8.0
    np.testing.assert_array_equal(optimizer.histogram, [0, 0])


def test_only_half_precision_is_counted() -> None:
    optimizer = scaling()
    step(optimizer, 1.0, tf.float32)
    np.testing.assert_array_equal(optimizer.histogram, [0, 0])
    step(optimizer, 1.0)
    step(optimizer, 60000.0)
    np.testing.assert_array_equal(optimizer.histogram, [1, 1])
    np.testing.assert_allclose(optimizer.normalized_histogram, [0.5, 0.5])
    optimizer.reset()
    np.testing.assert_array_equal(optimizer.histogram, [0, 0])


def test_an_overflow_is_the_largest_number() -> None:
    optimizer = scaling(SGD(1e-4), initial_loss_scaling_factor=16)
    assert np.isfinite(step(optimizer, np.inf))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"increase_factor": 3}, "increase_factor must be a power of two"),
        ({"update_frequency": 0}, "must be nonzero and positive"),
        ({"ratio_threshold": 1.0}, "less than one"),
        ({"initial_loss_scaling_factor": 32768}, "less than max_loss_scaling_factor"),
        ({"max_loss_scaling_factor": 2}, "x increase_factor must be less"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        scaling(**settings)


def test_results_cannot_be_set_and_settings_can() -> None:
    optimizer = scaling()
    with pytest.raises(ValueError, match="histogram is a read only property"):
        optimizer.histogram = 1
    optimizer.update_frequency = 1
    step(optimizer, 1.0)
    assert float(optimizer.loss_scaling_factor) == 2.0
    optimizer.lr = 0.25
    assert float(optimizer._opt.learning_rate) == 0.25


@pytest.mark.parametrize(
    ("scaled", "plain"),
    [
        (ALSOptimizerSGD(0.1, 0.9), SGD(0.1, 0.9)),
        (ALSOptimizerAdam(0.1), tf.keras.optimizers.Adam(0.1)),
        (ALSOptimizerRMSProp(0.1, momentum=0.5, centered=True), None),
    ],
)
def test_the_factor_cancels_out_of_every_optimiser(scaled: Any, plain: Any) -> None:
    plain = plain or tf.keras.optimizers.RMSprop(0.1, momentum=0.5, centered=True)
    scaled.update_frequency = 1
    pair = [tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])]
    for number in range(4):
        gradient = tf.constant([0.5, -0.25 * number])
        factor = scaled.loss_scaling_factor
        scaled.apply_gradients([(gradient * factor, pair[0])])
        plain.apply_gradients([(gradient, pair[1])])
    assert float(scaled.loss_scaling_factor) == 16.0
    np.testing.assert_allclose(pair[0], pair[1], rtol=1e-5)


def test_specialised_optimisers_take_all_settings() -> None:
    names = list(inspect.signature(ALSOptimizerAdam.__init__).parameters)
    assert names[:6] == [
        "self",
        "learning_rate",
        "beta_1",
        "beta_2",
        "epsilon",
        "initial_loss_scaling_factor",
    ]
    assert names[-1] == "name"


@pytest.mark.parametrize(
    "make",
    [
        scaling,
        ALSOptimizerSGD,
        ALSOptimizerAdam,
        ALSOptimizerRMSProp,
        lambda: GradientAccumulationOptimizer(SGD(0.5), 2),
        lambda: ALSGradientAccumulationOptimizer(scaling(), 2),
    ],
)
def test_a_configuration_makes_the_optimiser_again(make: Any) -> None:
    optimizer = make()
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    with pytest.raises(AttributeError, match="can't set attribute"):
        optimizer.weights = []


def test_accumulation_of_one_batch_is_none() -> None:
    inner = SGD(0.5)
    assert GradientAccumulationOptimizer(inner, 1) is inner
    with pytest.raises(ValueError, match=">= 1"):
        GradientAccumulationOptimizer(inner, 0)
    with pytest.raises(ValueError, match="instances of ALSOptimizer"):
        ALSGradientAccumulationOptimizer(inner, 2)


# Gradients 1, 2, 3, 4 in a loop: two updates of two batches each.
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: GradientAccumulationOptimizer(SGD(1.0), 2), -10.0),
        (
            lambda: GradientAccumulationOptimizer(SGD(1.0), 2, reduction_method="mean"),
            -5,
        ),
        (lambda: ALSGradientAccumulationOptimizer(scaling(SGD(1.0)), 2), -10.0),
    ],
)
def test_every_other_step_is_an_update(make: Any, expected: float) -> None:
    scoped = strategy()
    with scoped.scope():
        optimizer, variable = make(), tf.Variable(0.0)

        def body(gradient: Any) -> Any:
            optimizer.apply_gradients([(gradient, variable)])
            return gradient + 1.0

        program = tf.function(lambda: loops.repeat(4, body, [tf.constant(1.0)]))
        scoped.run(program)
    assert float(variable) == expected
    assert int(optimizer.iterations) == 2


def test_the_former_optimiser_of_replicas_is_that_inside() -> None:
    # 1 - 0.5 * 2: the mean of one replica's gradient is that gradient.
    optimizer = CrossReplicaOptimizer(SGD(0.5))
    assert step(optimizer, 2.0) == 0.0
    again = CrossReplicaOptimizer.from_config(optimizer.get_config())
    assert float(again.learning_rate) == 0.5
