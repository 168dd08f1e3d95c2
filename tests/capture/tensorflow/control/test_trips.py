"""How often loops run, found out when compiling."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tensorflow")

import numpy as np
import tensorflow as tf

from popple.capture.tensorflow.control.trips import LoopTensors, count_trips
from popple.capture.tensorflow.framework import loop_graphs
from tests.capture.tensorflow.tracing import spec, trace


def loop_of(condition: Any, body: Any, *start: Any) -> tuple[LoopTensors, list[Any]]:
    """The loop, and what its variables are in the beginning."""
    graph = trace(
        lambda x: tf.while_loop(condition, body, [*map(tf.constant, start), x])[-1],
        spec(3),
    )
    (op,) = [op for op in graph.get_operations() if "While" in op.type]
    tests, steps = loop_graphs(op)
    tensors = LoopTensors(tests.outputs[0], tests.inputs, steps.inputs, steps.outputs)
    known = [tf.get_static_value(tensor) for tensor in op.inputs]
    return tensors, [None if k is None else np.asarray(k) for k in known]


@given(st.integers(0, 1 << 39))
def test_trips_are_found_by_bisection(num_trips: int) -> None:
    assert count_trips(lambda trip: trip < num_trips) == num_trips


def test_a_condition_that_always_holds_has_no_number_of_trips() -> None:
    assert count_trips(lambda trip: True) is None


def test_a_condition_nobody_knows_has_no_number_of_trips() -> None:
    assert count_trips(lambda trip: None) is None


@pytest.mark.parametrize(
    ("start", "step", "limit", "expected"),
    [(0, 1, 10, 10), (3, 4, 20, 5), (5, 1, 5, 0), (0, 1, 2_000_000_000, 2_000_000_000)],
)
def test_counters_in_equal_steps(
    start: int, step: int, limit: int, expected: int
) -> None:
    tensors, known = loop_of(
        lambda i, _: i < limit, lambda i, x: (i + step, tf.sin(x)), start
    )
    assert tensors.count(known) == expected


def test_counters_that_count_down() -> None:
    tensors, known = loop_of(lambda i, _: i > 0, lambda i, x: (i - 2, tf.sin(x)), 9)
    assert tensors.count(known) == 5


def test_counters_in_unequal_steps_are_followed() -> None:
    tensors, known = loop_of(lambda i, _: i < 100, lambda i, x: (i * 2, x * 2.0), 1)
    assert tensors.count(known) == 7  # 1 2 4 8 16 32 64, then 128


def test_two_conditions() -> None:
    tensors, known = loop_of(
        lambda i, j, _: tf.logical_and(i < 10, j < 6),
        lambda i, j, x: (i + 1, j + 2, tf.sin(x)),
        0,
        0,
    )
    assert tensors.count(known) == 3


def test_data_decides() -> None:
    tensors, known = loop_of(
        lambda i, x: x[0] < 9.0, lambda i, x: (i + 1, tf.sin(x)), 0
    )
    assert tensors.count(known) is None


def test_variables_that_are_passed_through() -> None:
    tensors, known = loop_of(
        lambda i, n, _: i < n, lambda i, n, x: (i + 1, n, tf.sin(x)), 0, 4
    )
    passed = [tensors.is_passed_through(i) for i in range(len(known))]
    assert tensors.count(known) == 4
    assert passed.count(False) == 3  # TensorFlow's counter, i and x
