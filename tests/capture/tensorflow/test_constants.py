"""Arithmetic that the compiler does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow.constants import MAX_ELEMENTS, fold
from tests.capture.tensorflow.tracing import trace

raw: Any = tf.raw_ops


def folded(function: Any, *values: Any) -> Any:
    """What the last op of a function gives for constants, if it is folded."""
    arrays = [np.asarray(value) for value in values]
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in arrays]
    graph = trace(function, *specs)
    results = fold(graph.outputs[0].op.inputs[0].op, arrays)
    return None if results is None else results[0].tolist()


def _gradient_axes(a: Any, b: Any) -> Any:
    return raw.BroadcastGradientArgs(s0=a, s1=b)[0]


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (lambda a, b: a + b, ([1, 2], [3, 4]), [4, 6]),
        (lambda a, b: a // b, (7, 2), 3),
        (lambda a, b: a % b, (-7, 3), 2),
        (lambda a, b: a < b, (1, 2), True),
        (tf.logical_and, (True, False), False),
        (tf.reduce_prod, ([2, 3, 4], 0), 24),
        (tf.math.invert_permutation, ([1, 2, 0],), [2, 0, 1]),
        (_gradient_axes, ([4, 1], [4, 6]), [1]),
    ],
)
def test_arithmetic_with_what_is_known(
    function: Any, values: Any, expected: Any
) -> None:
    assert folded(function, *values) == expected


def test_large_arrays_are_left_to_the_machine() -> None:
    assert folded(lambda a: tf.sin(a), np.zeros(MAX_ELEMENTS + 1, np.float32)) is None


def test_random_numbers_are_drawn_on_the_machine() -> None:
    draw = raw.StatelessRandomUniform
    assert folded(lambda s: draw(shape=tf.constant([3]), seed=s), [1, 2]) is None
