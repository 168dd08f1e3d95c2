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


def test_a_device_that_gives_no_number_does_not_cut_off() -> None:
    result = on_device(lambda: half(300) * half(300), nanoo=True)
    assert not np.isfinite(result)


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


def test_infinities_that_are_meant_stay() -> None:
    result = on_device(lambda: tf.cast(tf.constant([1e9, -np.inf]), tf.float16))
    assert np.isinf(result).all()


def test_a_list_of_results_is_a_list() -> None:
    kinds: list[type] = []

    def net() -> Any:
        parts = tf.split(half(1, 2), 2)
        kinds.append(type(parts))
        return parts[0]

    on_device(net)
    assert set(kinds) == {list}
