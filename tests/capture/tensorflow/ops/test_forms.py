"""What rules share: numbers that are part of ops, and views that permute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow.ops.forms import is_number
from popple.graph import Role
from tests.capture.tensorflow.tracing import (
    array,
    graph_of,
    kinds,
    names_of,
    of_kind,
    spec,
)


def test_a_number_is_part_of_the_op() -> None:
    graph = graph_of(lambda x: x * 2.0, spec(3))
    assert of_kind(graph, "mul")[0].inputs == ("x",)
    assert names_of(graph, Role.CONSTANT) == []


def test_a_constant_that_widens_the_other_operand_is_a_value() -> None:
    graph = graph_of(lambda x: x * tf.ones((3, 1)), spec(4))
    assert len(of_kind(graph, "mul")[0].inputs) == 2


def test_a_constant_tensor_is_one_value_however_often_it_is_read() -> None:
    table = tf.constant(array(4))
    graph = graph_of(lambda x: (x + table) * table, spec(4))
    assert len(names_of(graph, Role.CONSTANT)) == 1


def test_arithmetic_of_constants_is_done_when_compiling() -> None:
    graph = graph_of(lambda x: x + tf.range(4.0) * 2.0 + tf.sqrt(tf.ones(4)), spec(4))
    assert kinds(graph) == ["add", "add"]


def test_element_wise_ops_look_through_permutations() -> None:
    def function(x: Any, y: Any) -> Any:
        return tf.transpose(tf.transpose(x) * y + 1.0)

    graph = graph_of(function, spec(4, 6), spec(6, 4))
    assert kinds(graph) == ["permute", "mul", "add"]  # only y is permuted
    assert of_kind(graph, "permute")[0].inputs == ("y",)


def test_smaller_operands_are_aligned_with_what_permutations_look_at() -> None:
    graph = graph_of(
        lambda x, b: tf.transpose(x, (0, 2, 1)) + b, spec(2, 3, 4), spec(3)
    )
    (reshape,) = of_kind(graph, "reshape")
    assert graph.type_of(reshape.outputs[0]).shape == (3, 1)
    assert graph.type_of(of_kind(graph, "add")[0].outputs[0]).shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (np.asarray(1.0), True),
        (np.ones((3, 4)), True),
        (np.arange(3), False),
        (np.zeros((0,)), False),
        ("x", False),
    ],
)
def test_numbers(known: Any, expected: bool) -> None:
    assert is_number(known) is expected
