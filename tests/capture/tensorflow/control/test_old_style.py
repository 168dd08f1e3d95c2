"""Old-style loops and branches, as graphs of TensorFlow 1 have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow import LoweredProgram
from popple.capture.tensorflow.control import loops
from popple.errors import CaptureError
from popple.graph import Role, all_ops
from tests.capture.tensorflow.tracing import (
    kinds,
    lower_graph,
    names_of,
    op_cycles,
    runs,
)

v1: Any = tf.compat.v1


@pytest.fixture(autouse=True)
def _old_control_flow() -> Iterator[None]:
    was_new = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    yield
    if was_new:
        v1.enable_control_flow_v2()


def lower_old(build: Callable[[Any], Any], *shape: int) -> LoweredProgram:
    """The program that `build` makes of a placeholder, in a graph of its own."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, shape, "x")
        num_before = len(graph.get_operations())
        results = tf.nest.flatten(build(x))
    ops = graph.get_operations()[num_before:]
    return lower_graph(graph, ops=ops, results=results)


def weight_of(*shape: int) -> Any:
    with v1.variable_scope("net", use_resource=True):
        return v1.get_variable("weight", shape)


def loop(num_trips: int, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """What `body` makes of `start` in the end."""
    _, result = v1.while_loop(
        lambda trip, _: trip < num_trips,
        lambda trip, value: [trip + 1, body(trip, value)],
        [tf.constant(0), start],
        parallel_iterations=1,
    )
    return result


def recurrent(x: Any) -> Any:
    weight = weight_of(4, 4)
    return loop(6, lambda t, h: tf.tanh(x[t] + tf.matmul(h, weight)), tf.zeros((2, 4)))


def test_what_comes_from_outside_is_streamed_in() -> None:
    lowered = lower_old(tf.sin, 3)
    assert names_of(lowered.graph, Role.INPUT) == ["x"]


def test_a_loop_of_the_step_is_walked_as_often_as_it_runs() -> None:
    graph = lower_old(recurrent, 6, 2, 4).graph
    assert kinds(graph).count("repeat") == 1
    assert runs(graph)["tanh"] == 6


def test_the_gradient_of_a_loop_is_a_loop() -> None:
    def train(x: Any) -> Any:
        loss = tf.reduce_mean(recurrent(x))
        return v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    lowered = lower_old(train, 6, 2, 4)
    found = runs(lowered.graph)
    assert found["repeat"] == 2
    assert found["tanh_grad"] == 6
    assert found["matmul"] == 6 + 6 + 6  # forward, for the weight, for the state
    assert list(lowered.gradients) == ["net/weight"]


def trained_scan(num_steps: int) -> LoweredProgram:
    """A recurrent network over TensorArrays, and its gradient."""

    def train(x: Any) -> Any:
        weight = weight_of(1024, 1024)
        states = tf.scan(
            lambda state, row: tf.tanh(row + tf.matmul(state, weight)),
            x,
            tf.zeros((512, 1024)),
        )
        loss = tf.reduce_mean(tf.square(states))
        return v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    return lower_old(train, num_steps, 512, 1024)


def test_loops_over_tensor_arrays_are_functions() -> None:
    short, long = (trained_scan(n) for n in (8, 500))
    assert not long.remarks
    assert len(list(all_ops(short.graph))) == len(list(all_ops(long.graph)))
    assert runs(long.graph)["tanh"] == runs(long.graph)["tanh_grad"] == 500
    assert "generic" not in runs(long.graph)


def test_tensor_arrays_cost_about_what_they_cost_unrolled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_function = trained_scan(8)

    def fail(*_: Any) -> Any:
        raise CaptureError("not now")

    monkeypatch.setattr(loops, "_walk_as_function", fail)
    unrolled = trained_scan(8)
    assert runs(unrolled.graph)["repeat"] == 0
    assert 1 < op_cycles(as_function) / op_cycles(unrolled) < 1.15


def test_the_programs_own_loop_is_counted() -> None:
    def program(x: Any) -> Any:
        weight = weight_of(4, 3)

        def body(_: Any, __: Any) -> Any:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weight)))
            train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
            with tf.control_dependencies([train]):
                return tf.identity(loss)

        return loop(25, body, tf.constant(0.0))

    lowered = lower_old(program, 8, 4)
    assert (lowered.num_trips, lowered.update) == (25, ("momentum_update", 1))
    assert kinds(lowered.graph).count("square") == 1


def test_loops_in_loops() -> None:
    def program(x: Any) -> Any:
        return loop(3, lambda _, v: loop(2, lambda _, w: tf.sin(w), v), x)

    graph = lower_old(program, 3).graph
    assert kinds(graph) == ["repeat"]
    assert runs(graph)["sin"] == 6


def test_a_loop_of_unknown_length_has_a_condition() -> None:
    def program(x: Any) -> Any:
        return v1.while_loop(lambda v: tf.reduce_sum(v) < 9.0, lambda v: [v * v], [x])

    lowered = lower_old(program, 3)
    (op,) = lowered.graph.ops
    assert (op.kind, op.attrs["count"]) == ("while", 1)
    assert "depends on data" in lowered.remarks[0]


def test_of_unknown_branches_the_dearer_one_is_walked() -> None:
    def function(x: Any) -> Any:
        return v1.cond(x[0] > 0, lambda: tf.sin(tf.exp(x)), lambda: tf.cos(x))

    found = kinds(lower_old(function, 3).graph)
    assert "sin" in found
    assert "cos" not in found


def test_gradients_of_a_branch_not_taken_are_left_out() -> None:
    def train(x: Any) -> Any:
        weight = weight_of(3)
        y = v1.cond(x[0] > 0, lambda: tf.sin(tf.exp(weight)), lambda: tf.cos(weight))
        return v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))

    lowered = lower_old(train, 3)
    assert list(lowered.gradients) == ["net/weight"]
    assert "generic" not in kinds(lowered.graph)


def test_initialisers_are_no_part_of_the_program() -> None:
    lowered = lower_old(lambda x: tf.matmul(x, weight_of(4, 3)), 8, 4)
    assert kinds(lowered.graph) == ["matmul"]
    assert names_of(lowered.graph, Role.WEIGHT) == ["net/weight"]


def test_handles_may_be_handed_on_outside_the_program() -> None:
    graph = tf.Graph()
    with graph.as_default():
        weight = weight_of(3)
        handle = tf.identity(weight.handle)
        num_before = len(graph.get_operations())
        read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        read.set_shape((3,))
        result = tf.sin(read)
    ops = graph.get_operations()[num_before:]
    lowered = lower_graph(graph, ops=ops, results=[result])
    assert names_of(lowered.graph, Role.WEIGHT) == ["net/weight"]


def test_a_placeholder_on_the_device_is_an_input() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, (2, 4), "x")
        results = [tf.tanh(x)]
    lowered = lower_graph(graph, ops=graph.get_operations(), results=results)
    assert kinds(lowered.graph) == ["tanh"]
