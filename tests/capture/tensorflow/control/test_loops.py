"""Loops of a step become functions that run in every trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow import LoweredProgram
from popple.capture.tensorflow.control import loops
from popple.errors import CaptureError
from popple.graph import Graph, all_ops
from tests.capture.tensorflow.tracing import (
    graph_of,
    kinds,
    lower,
    model_program,
    of_kind,
    op_cycles,
    runs,
    spec,
)

Cell = Callable[[Any, Any], Any]


def scanned(num_steps: int, batch: int = 8, width: int = 32) -> LoweredProgram:
    """A recurrent network with its gradient."""
    weight = tf.Variable(tf.zeros((width, width)), name="weight")
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            states = tf.scan(
                lambda state, row: tf.tanh(row + tf.matmul(state, weight)),
                x,
                tf.zeros((batch, width)),
            )
            loss = tf.reduce_mean(tf.square(states))
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    return lower(step, spec(num_steps, batch, width))


def num_ops(graph: Graph) -> int:
    return len(list(all_ops(graph)))


def cycles(lowered: LoweredProgram) -> int:
    return model_program(lowered).simulation.cost.cycles


def repeated_sine(count: int) -> LoweredProgram:
    def program(x: Any) -> Any:
        for _ in tf.range(count):
            x = tf.sin(x)
        return x

    return lower(program, spec(64, 64))


def test_a_long_loop_has_as_many_ops_as_a_short_one() -> None:
    short, long = (scanned(n, width=64) for n in (10, 1000))
    assert num_ops(short.graph) == num_ops(long.graph)
    assert not long.remarks


def test_cycles_grow_with_the_trips() -> None:
    few, more, most = (cycles(repeated_sine(n)) for n in (10, 20, 1000))
    assert most - few == 99 * (more - few) > 0


def test_a_loop_runs_its_body_in_every_trip() -> None:
    def recurrent(x: Any, w: Any) -> Any:
        state = tf.zeros((2, 4))
        for step in tf.range(6):
            state = tf.tanh(x[step] + tf.matmul(state, w))
        return state

    graph = graph_of(recurrent, spec(6, 2, 4), spec(4, 4))
    (loop,) = of_kind(graph, "repeat")
    assert loop.attrs["count"] == 6
    assert runs(graph)["tanh"] == runs(graph)["matmul"] == 6


def test_a_counter_that_nothing_reads_is_not_carried() -> None:
    lowered = repeated_sine(10_000_000)
    (loop,) = lowered.graph.ops
    assert (loop.attrs["count"], len(loop.inputs), lowered.num_trips) == (
        10_000_000,
        1,
        1,
    )
    assert kinds(lowered.graph.functions[str(loop.attrs["function"])]) == ["sin"]


def test_a_counter_that_is_read_is_carried() -> None:
    def program(x: Any) -> Any:
        for step in tf.range(5):
            x += tf.cast(step, tf.float32)
        return x

    graph = graph_of(program, spec(3))
    (loop,) = of_kind(graph, "repeat")
    assert [str(graph.type_of(name)) for name in loop.outputs] == ["i32[]", "f32[3]"]


def test_arrays_are_written_row_by_row() -> None:
    graph = graph_of(lambda x: tf.map_fn(lambda row: row * 2.0, x), spec(5, 3))
    found = runs(graph)
    assert (found["mul"], found["restore"], found["stash"]) == (5, 5, 5)
    (loop,) = of_kind(graph, "repeat")
    assert graph.type_of(loop.outputs[0]).shape == (5, 3)


def test_a_loop_with_gradients_costs_about_what_it_costs_unrolled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_function = scanned(8, 512, 1024)

    def fail(*_: Any) -> Any:
        raise CaptureError("not now")

    monkeypatch.setattr(loops, "_walk_as_function", fail)
    unrolled = scanned(8, 512, 1024)
    assert runs(unrolled.graph)["repeat"] == 0
    # Each step is there: forward, for the weight, and for the state before.
    assert runs(as_function.graph)["matmul"] == 3 * 8
    # Unrolled, there is no gradient for the first state.
    assert runs(unrolled.graph)["matmul"] == 3 * 8 - 1
    # Rows are written and read in every step, which unrolled steps do not have to do.
    assert 1 < op_cycles(as_function) / op_cycles(unrolled) < 1.15


def test_what_the_backward_pass_reads_is_kept_in_one_value() -> None:
    graph = scanned(10).graph
    forward, backward = of_kind(graph, "repeat")
    kept = set(forward.outputs) & set(backward.inputs)
    assert {graph.type_of(name).shape for name in kept} == {(10, 8, 32)}


def test_only_what_is_read_behind_a_loop_is_carried() -> None:
    forward, _ = of_kind(scanned(10).graph, "repeat")
    # The state, what is returned, and two lists for the backward pass; the places of
    # rows, which TensorFlow keeps as well, are not read.
    assert len(forward.outputs) == 4


def test_loops_in_loops() -> None:
    def program(x: Any) -> Any:
        for _ in tf.range(3):
            for _ in tf.range(2):
                x = tf.sin(x)
        return x

    graph = graph_of(program, spec(3))
    assert kinds(graph) == ["repeat"]
    assert runs(graph)["sin"] == 6


def test_variables_that_a_body_reads_are_given_to_it() -> None:
    weight = tf.Variable(tf.zeros((3, 3)), name="weight")

    def program(x: Any) -> Any:
        for _ in tf.range(4):
            x = tf.matmul(x, weight)
        return x

    (loop,) = of_kind(graph_of(program, spec(2, 3)), "repeat")
    assert loop.inputs[1:] == ("weight",)


def test_a_loop_of_unknown_length_has_a_condition() -> None:
    def program(x: Any) -> Any:
        while tf.reduce_sum(x) < 100.0:
            x = tf.exp(x)
        return x

    lowered = lower(program, spec(64, 64))
    (loop,) = of_kind(lowered.graph, "while")
    assert loop.attrs["count"] == 1
    condition = lowered.graph.functions[str(loop.attrs["condition"])]
    assert kinds(condition)[-1] == "less"
    assert "depends on data" in lowered.remarks[0]
    assert cycles(lowered) > 0


def test_a_body_whose_shapes_change_is_unrolled() -> None:
    def program(x: Any) -> Any:
        _, grown = tf.while_loop(
            lambda step, _: step < 3,
            lambda step, value: (step + 1, tf.concat([value, x], 0)),
            (tf.constant(0), x),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 3])),
        )
        return tf.sin(grown)

    lowered = lower(program, spec(2, 3))
    assert kinds(lowered.graph).count("concat") == 3
    assert "unrolled" in lowered.remarks[0]


def test_the_batch_is_that_of_what_is_fed() -> None:
    data = iter(tf.data.Dataset.from_tensors(tf.zeros((8, 4))).repeat())
    total = tf.Variable(tf.zeros(4), trainable=False, name="total")

    def program(first: Any, second: Any) -> Any:
        for _ in tf.range(9):
            total.assign_add(tf.reduce_sum(next(data), 0) + first + second)
        return total

    assert lower(program, spec(4), spec(4)).micro_batch == 8
