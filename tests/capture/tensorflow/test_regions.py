"""Several TensorFlow ops that stand for one of the machine."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow.regions import exchange_kind, parse_label
from popple.engine.tensorflow import (
    all_gather,
    all_reduce_sum,
    in_turn,
    region,
    tracing,
    weight_update,
)
from popple.graph import DType, TensorType
from popple.marks import ACCUMULATE, NOTHING
from tests.capture.tensorflow.tracing import (
    graph_of,
    kinds,
    lower,
    lower_graph,
    of_kind,
    spec,
    trace,
)


def test_labels() -> None:
    assert parse_label("gelu:7") == ("gelu", {})
    label = 'conv:8 {"stride": [1, 2], "groups": 3}'
    assert parse_label(label) == ("conv", {"stride": (1, 2), "groups": 3})


@pytest.mark.parametrize(
    ("sent", "received", "expected"),
    [(8, 8, "all_reduce"), (8, 16, "all_gather"), (8, 4, "reduce_scatter")],
)
def test_exchanges_by_size(sent: int, received: int, expected: str) -> None:
    types = [TensorType(DType.F32, (size,)) for size in (sent, received)]
    assert exchange_kind(*types) == expected


def gelu(x: Any) -> Any:
    with region("gelu"):
        return x * tf.sigmoid(1.702 * x)


def test_a_region_is_one_op() -> None:
    graph = graph_of(lambda x: gelu(x) + 1.0, spec(3))
    assert kinds(graph) == ["gelu", "add"]
    assert of_kind(graph, "gelu")[0].inputs == ("x",)


def test_a_region_whose_inside_is_read_is_walked() -> None:
    def function(x: Any) -> Any:
        with region("gelu"):
            half = tf.sigmoid(x)
            whole = x * half
        return whole, half

    assert kinds(graph_of(function, spec(3))) == ["sigmoid", "mul"]


def test_two_regions_are_two_ops() -> None:
    assert kinds(graph_of(lambda x: gelu(gelu(x)), spec(3))) == ["gelu", "gelu"]


def replicated(function: Any, count: int) -> Any:
    with tracing(count):
        graph = trace(function, spec(4))
    return lower_graph(graph, replicas=count).graph


def test_what_replicas_exchange_is_a_collective() -> None:
    graph = replicated(lambda x: all_reduce_sum(x) + all_gather(x)[0], 2)
    assert [k for k in kinds(graph) if k.startswith("all")] == [
        "all_reduce",
        "all_gather",
    ]
    assert of_kind(graph, "all_reduce")[0].attrs["replicas"] == 2


def test_taking_turns_is_nothing() -> None:
    graph = replicated(lambda x: in_turn(lambda: [tf.sin(x)])[0], 2)
    assert kinds(graph) == ["sin"]
    assert len(graph.outputs) == 1


def test_a_sum_over_batches_is_what_is_added() -> None:
    total = tf.Variable(tf.zeros(3), trainable=False)

    def function(x: Any) -> Any:
        gradient = tf.sin(x)
        with region(ACCUMULATE):
            added = total.assign_add(gradient).read_value()
        with region(NOTHING):
            total.assign(tf.zeros(3))
        return tf.cos(added)

    assert kinds(graph_of(function, spec(3))) == ["sin", "cos"]


def test_an_update_says_how_many_batches_it_is_for() -> None:
    weight = tf.Variable(tf.zeros(3))

    def step(x: Any) -> None:
        with weight_update(5):
            weight.assign_sub(tf.sin(x))

    assert lower(step, spec(3)).accumulation == 5
