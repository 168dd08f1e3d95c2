"""Branches become functions of the Graph unless the choice is known."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow import LoweredProgram
from popple.graph import DType
from tests.capture.tensorflow.tracing import (
    graph_of,
    kinds,
    lower,
    model_program,
    of_kind,
    runs,
    spec,
)


def test_a_branch_whose_choice_is_known_is_taken() -> None:
    def function(x: Any, is_first: bool) -> Any:
        return tf.cond(tf.constant(is_first), lambda: tf.exp(x), lambda: tf.sin(x))

    assert kinds(graph_of(lambda x: function(x, True), spec(3))) == ["exp"]
    assert kinds(graph_of(lambda x: function(x, False), spec(3))) == ["sin"]


def dear(x: Any) -> Any:
    return tf.sin(tf.cos(tf.exp(x)))


def chosen(x: Any) -> Any:
    return tf.cond(x[0, 0] > 0, lambda: dear(x), lambda: tf.abs(x))


def test_each_side_of_an_unknown_branch_is_a_function() -> None:
    graph = graph_of(chosen, spec(64, 64))
    (op,) = of_kind(graph, "branch")
    assert graph.type_of(op.inputs[0]).dtype is DType.BOOL
    first, second = (graph.functions[str(name)] for name in op.attrs["functions"])  # type: ignore[union-attr]
    assert kinds(first) == ["exp", "cos", "sin"]
    assert kinds(second) == ["abs"]


def test_a_branch_costs_its_dearer_side() -> None:
    def other(x: Any) -> Any:
        return tf.cond(x[0, 0] > 0, lambda: tf.abs(x), lambda: dear(x))

    first, second = (
        model_program(lower(each, spec(256, 256))) for each in (chosen, other)
    )
    assert first.simulation.cost.cycles == second.simulation.cost.cycles
    plain = model_program(lower(dear, spec(256, 256))).simulation.cost.cycles
    assert plain < first.simulation.cost.cycles < 1.5 * plain


def test_the_last_case_stands_for_all_others() -> None:
    def function(x: Any, which: Any) -> Any:
        sides = [lambda: tf.sin(x), lambda: tf.cos(x), lambda: tf.exp(x)]
        return tf.switch_case(which, sides)

    graph = graph_of(function, spec(8), spec(dtype=tf.int32))
    (op,) = of_kind(graph, "branch")
    names = [str(name) for name in op.attrs["functions"]]  # type: ignore[union-attr]
    assert [kinds(graph.functions[n]) for n in names] == [["sin"], ["cos"], ["exp"]]


def trained_branch() -> LoweredProgram:
    weight = tf.Variable(tf.zeros((64, 64)), name="weight")
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            y = tf.cond(
                x[0, 0] > 0,
                lambda: tf.tanh(tf.matmul(x, weight)),
                lambda: tf.matmul(x, weight),
            )
            loss = tf.reduce_sum(tf.square(y))
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    return lower(step, spec(64, 64))


def test_the_gradient_of_a_branch_is_a_branch() -> None:
    lowered = trained_branch()
    assert runs(lowered.graph)["branch"] == 2
    assert runs(lowered.graph)["tanh_grad"] == 1
    assert list(lowered.gradients) == ["weight"]
    assert model_program(lowered).simulation.cost.cycles > 0


def test_of_sides_that_change_something_the_dearer_is_walked() -> None:
    total = tf.Variable(tf.zeros(3), trainable=False, name="total")

    def function(x: Any) -> Any:
        if x[0] > 0:
            total.assign_add(tf.exp(tf.sin(x)))
        return x

    found = kinds(graph_of(function, spec(3)))
    assert "branch" not in found
    assert {"sin", "exp"} <= set(found)
