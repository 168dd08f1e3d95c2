"""Stochastic rounding: where it takes place, its mean, its gradients, its cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

from popple.pipeline import modelled  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")

Behaviour = ipu.config.StochasticRoundingBehaviour
COUNT = 4096
STEP = 2.0**-10  # between numbers of half precision from 1 to 2


def on_device(function: Any, *inputs: Any, esr: Any = Behaviour.ON) -> Any:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.floating_point_behaviour.esr = esr
    config.configure_ipu_system()
    tf.random.set_seed(1)
    return ipu.ipu_strategy.IPUStrategy().run(tf.function(function), inputs)


def halves(value: float) -> Any:
    return tf.fill([COUNT], np.float16(value))


def found(result: Any) -> tuple[list[float], float]:
    """The different numbers of a result, and its mean."""
    numbers = result.numpy().astype(np.float64)
    return np.unique(numbers).tolist(), float(numbers.mean())


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (lambda: halves(1) + halves(STEP / 4), 1 + STEP / 4),
        (lambda: halves(1) * tf.cast(1 + STEP / 4, tf.float16), 1.0),
        (lambda: tf.cast(tf.fill([COUNT], 1 + STEP / 8), tf.float16), 1 + STEP / 8),
        (lambda: halves(1.5) / halves(1.25), 1.2),
        (lambda: tf.sqrt(halves(1.25)), 1.25**0.5),
    ],
)
def test_results_lie_beside_the_exact_one(function: Any, exact: float) -> None:
    numbers, mean = found(on_device(function))
    below = np.floor(exact / STEP) * STEP
    assert set(numbers) <= {below, below + STEP}
    # Of 4096 numbers the mean is within four standard deviations, which are at most
    # half a step over the square root of 4096.
    assert mean == pytest.approx(exact, abs=4 * STEP / 2 / 64)


def test_numbers_below_the_normal_ones_are_rounded_too() -> None:
    tiny = 2.0**-24
    result = on_device(lambda: tf.cast(tf.fill([COUNT], tiny / 4), tf.float16))
    numbers, mean = found(result)
    assert numbers == [0.0, tiny]
    assert mean == pytest.approx(tiny / 4, abs=4 * tiny / 2 / 64)


def test_negative_and_infinite_numbers() -> None:
    numbers, _ = found(on_device(lambda: halves(-1) - halves(STEP / 4)))
    assert numbers == [-1 - STEP, -1]
    same = on_device(lambda: tf.cast([np.inf, -np.inf, np.nan, 0.0, 3.0], tf.float16))
    np.testing.assert_array_equal(same, [np.inf, -np.inf, np.nan, 0, 3])
    largest = on_device(lambda: halves(60000) + halves(60000))
    assert set(largest.numpy().tolist()) == {65504}


@pytest.mark.parametrize(
    ("esr", "override", "expected"),
    [
        (Behaviour.OFF, None, 1),
        (Behaviour.REPLICA_IDENTICAL_ONLY, None, 2),
        (Behaviour.ON, False, 1),
        (Behaviour.OFF, True, 2),
    ],
)
def test_a_scope_goes_before_the_configuration(
    esr: Any, override: bool | None, expected: int
) -> None:
    def add() -> Any:
        if override is None:
            return halves(1) + halves(STEP / 4)
        with ipu.scopes.stochastic_rounding(override):
            return halves(1) + halves(STEP / 4)

    numbers, _ = found(on_device(add, esr=esr))
    assert len(numbers) == expected


@pytest.mark.parametrize("tape", [True, False])
def test_gradients_pass(tape: bool) -> None:
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as recorded:
            recorded.watch(x)
            y = tf.exp(x * x)
        return recorded.gradient(y, x) if tape else tf.gradients(y, x)[0]

    (found,) = on_device(gradient, tf.constant([1.0], tf.float16)).numpy()
    # 2 e, give or take two roundings.
    assert float(found) == pytest.approx(2 * np.e, rel=4 * STEP)


def test_small_updates_are_not_lost() -> None:
    def after(esr: Any) -> float:
        weight = tf.Variable(halves(1))
        optimizer = tf.keras.optimizers.legacy.SGD(1.0)
        optimizer._create_all_weights([weight])

        def step() -> Any:
            return optimizer.apply_gradients([(halves(-STEP / 8), weight)])

        def program() -> None:
            ipu.loops.repeat(8, step)

        on_device(program, esr=esr)
        return float(weight.numpy().astype(np.float64).mean())

    assert after(Behaviour.OFF) == 1.0
    # Eight steps of an eighth; each of the numbers has gone one step on the average.
    assert after(Behaviour.ON) == pytest.approx(1 + STEP, abs=STEP / 8)


def test_rounding_costs_nothing() -> None:
    def kinds(esr: Any) -> list[str]:
        config = ipu.config.IPUConfig()
        config.floating_point_behaviour.esr = esr
        config.configure_ipu_system()
        strategy = ipu.ipu_strategy.IPUStrategy()

        @tf.function
        def program(x: Any) -> Any:
            y = tf.nn.softmax(x @ x) / 3.0
            return tf.reduce_sum(y) + tf.gradients(y, x)[0]

        strategy.run(program, [tf.ones([4, 4], tf.float16)])
        return [op.kind for op in modelled(strategy).graph.ops]

    assert kinds(Behaviour.ON) == kinds(Behaviour.OFF)
