"""Names, lines and phases of ops."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow.tags import forward_name, full_name
from popple.graph import Phase
from popple.marks import LAYER, PHASE
from tests.capture.tensorflow.tracing import graph_of, marked, of_kind, spec


@pytest.mark.parametrize(
    ("scope", "name", "expected"),
    [
        ("", "dense/MatMul", "dense/MatMul"),
        ("model", "dense/MatMul", "model/dense/MatMul"),
        ("model/dense", "dense/MatMul", "model/dense/MatMul"),
        ("", "while/cond_1/dense/MatMul", "dense/MatMul"),
        ("", "while", "while"),
    ],
)
def test_full_names(scope: str, name: str, expected: str) -> None:
    assert full_name(scope, name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dense/MatMul", None),
        ("gradient_tape/dense/MatMul/MatMul_1", ["dense", "MatMul", "MatMul_1"]),
        ("a/gradients_2/dense/MatMul_grad/MatMul", ["dense", "MatMul_grad", "MatMul"]),
        ("gradients/while_grad/gradients/b/c", ["b", "c"]),
    ],
)
def test_names_of_gradients_hold_those_of_forward_ops(
    name: str, expected: list[str] | None
) -> None:
    assert forward_name(name) == expected


def test_layers_are_named_by_their_mark() -> None:
    def function(x: Any) -> Any:
        with tf.name_scope("scope"), marked(LAYER, {"s": b"model/dense"}):
            return tf.tanh(x)

    (op,) = of_kind(graph_of(function, spec(3)), "tanh")
    assert (op.name, op.module) == ("scope/Tanh", "model/dense")


def test_phases_are_those_of_their_mark() -> None:
    def function(x: Any) -> Any:
        with marked(PHASE, {"s": b"update"}):
            return tf.tanh(x)

    assert of_kind(graph_of(function, spec(3)), "tanh")[0].phase is Phase.UPDATE


def test_lines_are_the_users() -> None:
    graph = graph_of(lambda x: tf.nn.softmax(tf.reduce_sum(x, 0)), spec(3, 4))
    lines = {op.line for op in graph.ops}
    assert {line.partition(":")[0] for line in lines} == {"test_tags.py"}
