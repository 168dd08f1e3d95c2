"""Ops that only imitate the machine's half precision cost nothing."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.core.framework import attr_value_pb2  # noqa: E402

from popple.marks import HALF  # noqa: E402
from tests.capture.tensorflow.tracing import graph_of, kinds, spec  # noqa: E402

MARKS = {HALF: attr_value_pb2.AttrValue(b=True)}


def imitated(make: Any) -> list[str]:
    """The kinds of ops that marked ones become."""

    def function(x: Any) -> Any:
        graph: Any = tf.compat.v1.get_default_graph()
        with graph._attr_scope(MARKS):
            made = make(x)
        return tf.tanh(made)

    return kinds(graph_of(function, spec(4, 8, dtype=tf.float16)))


def test_a_sum_in_single_precision_is_one_in_half() -> None:
    def mean(x: Any) -> Any:
        return tf.cast(tf.reduce_mean(tf.cast(x, tf.float32), 1), tf.float16)

    assert imitated(mean) == ["reduce_mean", "tanh"]


def test_where_half_precision_ends_the_machine_stops_by_itself() -> None:
    low, high = (tf.constant(bound, tf.float16) for bound in (-1.0, 1.0))

    def cut(x: Any) -> Any:
        return tf.raw_ops.ClipByValue(t=x, clip_value_min=low, clip_value_max=high)

    assert imitated(cut) == ["tanh"]


def test_what_is_asked_for_the_sake_of_half_precision_is_free() -> None:
    def no_number(x: Any) -> Any:
        return tf.where(tf.math.is_inf(x), tf.constant(1.0, tf.float16), x)

    assert imitated(no_number) == ["tanh"]
