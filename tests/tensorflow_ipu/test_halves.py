"""Half precision in programs: what is too large is the largest number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")

LARGEST = 65504.0


def half(*values: float) -> Any:
    return tf.constant(values, tf.float16)


def on_device(function: Any, nanoo: bool = False) -> Any:
    """What a function without arguments gives as a program for the device."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.floating_point_behaviour.nanoo = nanoo
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy().run(tf.function(function))


def test_results_too_large_are_the_largest_number() -> None:
    result = on_device(lambda: half(300, -300, 2) * half(300, 300, 2))
    np.testing.assert_array_equal(result, [LARGEST, -LARGEST, 4])
    # Outside a program, the arithmetic is TensorFlow's.
    assert np.isinf(half(300) * half(300))


def test_a_device_may_give_no_number_for_results_too_large() -> None:
    result = on_device(lambda: half(300, 2) * half(300, 2), nanoo=True)
    np.testing.assert_array_equal(result, [np.nan, 4])
    converted = on_device(lambda: tf.cast([1e9, -np.inf, 1], tf.float16), nanoo=True)
    np.testing.assert_array_equal(converted, [np.nan, -np.inf, 1])


def test_quotients_too_large_are_the_largest_number() -> None:
    # 1 / 0 is an infinity on purpose.
    result = on_device(lambda: half(300, -300, 1, 8) / half(0.001, 0.001, 0, 4))
    np.testing.assert_array_equal(result, [LARGEST, -LARGEST, np.inf, 2])


def test_sums_have_room_for_what_they_add_up() -> None:
    means = on_device(lambda: tf.reduce_mean(tf.fill([2, 500], half(300)[0]), 1))
    np.testing.assert_array_equal(means, [300, 300])
    # 2048 + 1 is 2048 in half precision, if it is added one by one.
    total = on_device(lambda: tf.reduce_sum(tf.ones([4000], tf.float16)))
    assert float(total) == 4000


@pytest.mark.parametrize("tape", [True, False])
def test_gradients_pass_what_was_cut_off(tape: bool) -> None:
    def gradient() -> Any:
        x = half(300)
        if not tape:
            return tf.gradients(x * x, x)[0]
        with tf.GradientTape() as recorded:
            recorded.watch(x)
            y = x * x
        return recorded.gradient(y, x)

    assert float(on_device(gradient)[0]) == 600


@pytest.mark.parametrize("nanoo", [False, True])
@pytest.mark.parametrize("tape", [True, False])
def test_gradients_pass_conversions_and_quotients(tape: bool, nanoo: bool) -> None:
    def gradient() -> Any:
        x = tf.constant([8.0])
        with tf.GradientTape() as recorded:
            recorded.watch(x)
            y = half(3) * (tf.cast(x, tf.float16) / half(2))
        return recorded.gradient(y, x) if tape else tf.gradients(y, x)[0]

    assert float(on_device(gradient, nanoo)[0]) == 1.5


def test_numbers_too_large_to_convert_are_infinite() -> None:
    result = on_device(lambda: tf.cast([1e9, -np.inf, 2], tf.float16))
    np.testing.assert_array_equal(result, [np.inf, -np.inf, 2])


def test_a_list_of_results_is_a_list() -> None:
    kinds: list[type] = []

    def net() -> Any:
        parts = tf.split(half(1, 2), 2)
        kinds.append(type(parts))
        return parts[0]

    on_device(net)
    assert set(kinds) == {list}
