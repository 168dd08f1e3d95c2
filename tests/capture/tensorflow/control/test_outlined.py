"""Outlined functions exist once, however often they are called."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.engine.tensorflow import outlined
from popple.graph import Role
from popple.plan.lowering.plan_ops import plan_ops
from popple.plan.planner import Planner
from tests.capture.tensorflow.tracing import (
    graph_of,
    kinds,
    lower,
    model_program,
    names_of,
    of_kind,
    spec,
)
from tests.plan.machines import bow


def layer(x: Any, weight: Any) -> Any:
    with outlined("layer"):
        return tf.nn.relu(tf.matmul(x, weight))


def stack(*widths: int) -> Any:
    """Layers one after the other, from each width to the next."""
    weights = [tf.Variable(tf.zeros(each)) for each in pairwise(widths)]

    def program(x: Any) -> Any:
        for weight in weights:
            x = layer(x, weight)
        return x

    return program


def test_calls_with_equal_signatures_share_a_function() -> None:
    graph = graph_of(stack(32, 32, 32, 32), spec(8, 32))
    assert kinds(graph) == ["call"] * 3
    assert len(graph.functions) == 1
    weights = [op.inputs[1] for op in of_kind(graph, "call")]
    assert weights == names_of(graph, Role.WEIGHT)


def test_other_shapes_are_another_function() -> None:
    graph = graph_of(stack(32, 32, 16, 16), spec(8, 32))
    assert kinds(graph) == ["call"] * 3
    assert len(graph.functions) == 3


def test_a_shared_function_is_planned_once() -> None:
    planner = Planner(bow())
    plan_ops(graph_of(stack(*(64,) * 11), spec(8, 64)), planner)
    assert planner.num_plans == 2  # the product and its activation


def test_what_the_backward_pass_reads_leaves_the_function() -> None:
    weight = tf.Variable(tf.zeros((32, 32)), name="weight")
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(layer(x, weight), weight))
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    lowered = lower(step, spec(8, 32))
    assert kinds(lowered.graph)[:2] == ["call", "call"]
    assert list(lowered.gradients) == ["weight"]
    assert model_program(lowered).simulation.cost.cycles > 0


def test_outlined_functions_in_outlined_functions() -> None:
    def block(x: Any, weight: Any) -> Any:
        with outlined("block"):
            return tf.tanh(layer(tf.exp(x), weight))

    weight = tf.Variable(tf.zeros((32, 32)), name="weight")
    graph = graph_of(lambda x: block(block(x, weight), weight), spec(8, 32))
    assert kinds(graph) == ["call", "call"]
    bodies = {tuple(kinds(body)) for body in graph.functions.values()}
    assert bodies == {("exp", "call", "tanh"), ("matmul", "relu")}


def test_a_function_that_changes_something_is_walked() -> None:
    total = tf.Variable(tf.zeros(3), trainable=False, name="total")

    def program(x: Any) -> Any:
        with outlined("count"):
            total.assign_add(tf.sin(x))
        return x

    assert kinds(graph_of(program, spec(3))) == ["sin", "add"]
