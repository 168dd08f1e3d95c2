"""Calls are walked into, the loops of a program are counted."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow import LoweredProgram
from popple.graph import Phase, Role
from tests.capture.tensorflow.tracing import (
    graph_of,
    kinds,
    lower,
    model_program,
    names_of,
    of_kind,
    spec,
)


def repeated(num_trips: Any, num_batches: int = 1) -> LoweredProgram:
    """A program that takes batches, adds up their gradients and updates a weight."""
    weight = tf.Variable(tf.zeros((4, 3)), name="weight")
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    data = iter(tf.data.Dataset.from_tensors(tf.zeros((8, 4))).repeat())

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(next(data), weight)))
        return tape.gradient(loss, weight)

    def update() -> None:
        if num_batches == 1:
            total = gradient()
        else:
            total = tf.zeros((4, 3))
            for _ in tf.range(num_batches):
                total += gradient()
        optimizer.apply_gradients([(total, weight)])

    def program() -> None:
        for _ in tf.range(num_trips):
            update()

    return lower(program)


def test_functions_are_walked_in_place_of_their_calls() -> None:
    @tf.function
    def square(x: Any) -> Any:
        return x * x

    assert kinds(graph_of(lambda x: square(square(x)), spec(3))) == ["mul", "mul"]


def test_the_gradient_of_a_function_belongs_to_the_backward_pass() -> None:
    @tf.function
    def layer(x: Any) -> Any:
        return tf.tanh(x)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        return tape.gradient(y, x)

    phases = {op.kind: op.phase for op in graph_of(step, spec(3)).ops}
    assert phases["tanh"] is Phase.FORWARD
    assert phases["tanh_grad"] is Phase.BACKWARD


def test_the_programs_own_loop_is_walked_once_and_counted() -> None:
    lowered = repeated(50)
    assert (lowered.num_trips, lowered.accumulation) == (50, 1)
    assert kinds(lowered.graph).count("matmul") == 2  # forward, and for the weight
    assert model_program(lowered).graph.execution.device_iterations == 50


def test_a_loop_inside_the_update_counts_micro_batches() -> None:
    lowered = repeated(5, num_batches=8)
    assert (lowered.num_trips, lowered.accumulation) == (40, 8)
    execution = model_program(lowered).graph.execution
    assert (execution.accumulation, execution.device_iterations) == (8, 5)


def test_sums_over_micro_batches_are_left_to_the_passes() -> None:
    once, added = repeated(5), repeated(5, num_batches=8)
    assert kinds(added.graph) == kinds(once.graph)
    assert names_of(added.graph, Role.STATE) == []


def test_a_loop_that_depends_on_data_is_noted() -> None:
    weight = tf.Variable(tf.zeros(3), name="weight")

    def program(x: Any) -> None:
        while tf.reduce_sum(weight) < tf.reduce_sum(x):
            weight.assign_add(x)

    lowered = lower(program, spec(3))
    assert lowered.num_trips == 1
    assert "depends on data" in lowered.remarks[0]


def test_an_update_in_a_branch_belongs_to_the_update() -> None:
    weight = tf.Variable(tf.zeros(3), name="weight")
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(x * weight))
        gradient: Any = tape.gradient(loss, weight)
        if tf.reduce_all(tf.math.is_finite(gradient)):
            optimizer.apply_gradients([(gradient * 0.5, weight)])

    lowered = lower(step, spec(3))
    assert list(lowered.gradients) == ["weight"]
    halved = of_kind(lowered.graph, "mul")[-1]
    assert halved.phase is Phase.UPDATE


def test_what_happens_once_is_not_repeated() -> None:
    total = tf.Variable(tf.zeros(3), trainable=False, name="total")

    def program(x: Any) -> Any:
        scaled = tf.exp(x)  # once, but every trip needs it
        for _ in tf.range(9):
            total.assign_add(scaled)
        return tf.sin(total)  # once, and nothing needs it

    assert kinds(graph_of(program, spec(3))) == ["exp", "add"]
