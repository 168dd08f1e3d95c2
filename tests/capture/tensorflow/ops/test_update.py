"""Variables: reads, writes, and what optimisers do to them."""

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

raw: Any = tf.raw_ops


def variable(*shape: int, name: str = "v") -> tf.Variable:
    return tf.Variable(tf.zeros(shape), name=name)


def trained_with(optimizer: Any) -> LoweredProgram:
    weight = variable(6, 3, name="weight")

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, weight))
        gradient = tape.gradient(loss, weight)
        optimizer.apply_gradients([(gradient, weight)])

    return lower(step, spec(4, 6))


OPTIMISERS = {
    "GradientDescentOptimizer": ("sgd_update", 0),
    "AdagradOptimizer": ("rmsprop_update", 1),
    "AdadeltaOptimizer": ("rmsprop_update", 2),
    "RMSPropOptimizer": ("rmsprop_update", 2),
    "FtrlOptimizer": ("rmsprop_update", 2),
    "AdamOptimizer": ("adam_update", 2),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_become_updates_with_their_state(name: str) -> None:
    lowered = trained_with(getattr(tf.compat.v1.train, name)(0.1))
    assert lowered.update == OPTIMISERS[name]
    assert list(lowered.gradients) == ["weight"]
    modelled = model_program(lowered)
    kind, num_states = OPTIMISERS[name]
    (update,) = of_kind(modelled.graph, kind)
    assert update.phase is Phase.UPDATE
    assert len(update.inputs) == 2 + num_states


def test_a_read_costs_nothing() -> None:
    held = variable(3)
    graph = graph_of(lambda: held + held)
    assert kinds(graph) == ["add"]
    assert names_of(graph, Role.WEIGHT) == ["v"]


def test_a_write_goes_to_the_memory_of_the_variable() -> None:
    held = variable(3)
    graph = graph_of(lambda x: held.assign_add(x), spec(3))
    (op,) = of_kind(graph, "add")
    assert graph.values[op.outputs[0]].storage == "v"


def test_a_read_after_a_write_reads_what_was_written() -> None:
    held = variable(3)

    def function(x: Any) -> Any:
        held.assign(x)
        return held * 2.0

    graph = graph_of(function, spec(3))
    write, product = graph.ops
    assert (write.kind, product.kind) == ("update_slice", "mul")
    assert product.inputs == write.outputs


def test_variables_of_one_name_are_told_apart() -> None:
    first, second = variable(3), variable(5)
    graph = graph_of(lambda: (first + 1.0, second + 1.0))
    assert names_of(graph, Role.WEIGHT) == ["v", "v_2"]


def test_running_statistics_are_written_by_the_normalisation() -> None:
    mean, variance = variable(3, name="mean"), variable(3, name="variance")

    def function(x: Any) -> Any:
        y, m, v = tf.compat.v1.nn.fused_batch_norm(x, tf.ones(3), tf.zeros(3))
        mean.assign(m)
        variance.assign(v)
        return y

    graph = graph_of(function, spec(2, 4, 4, 3))
    assert [k for k in kinds(graph) if k != "permute"] == ["batch_norm"]


def test_rows_of_a_sparse_gradient_are_added_up() -> None:
    table = variable(20, 4, name="table")
    optimizer = tf.compat.v1.train.AdagradOptimizer(0.1)

    def step(indices: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, indices))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    lowered = lower(step, spec(5, dtype=tf.int32))
    *_, rows = of_kind(lowered.graph, "scatter_add")  # equal indices come first
    assert lowered.gradients == {"table": rows.outputs[0]}
    assert lowered.graph.type_of(rows.outputs[0]).shape == (20, 4)
