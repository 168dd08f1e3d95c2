"""lower_program: values, phases and gradients of a whole training step."""

from __future__ import annotations

import gc
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf
from tensorflow.python.ipu.ops.pipelining_ops import recomputation_checkpoint

from popple.capture.tensorflow import LoweredProgram
from popple.errors import CaptureError
from popple.graph import Phase, Role, parse_graph, render_graph
from tests.capture.tensorflow.tracing import (
    graph_of,
    ints,
    kinds,
    lower,
    lower_graph,
    model_program,
    names_of,
    of_kind,
    spec,
    trace,
)


def training_step() -> LoweredProgram:
    """A small CNN with its loss and one update."""
    kernel = tf.Variable(tf.zeros((3, 3, 1, 4)), name="conv/kernel")
    weight = tf.Variable(tf.zeros((4, 3)), name="out/weight")
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            with tf.name_scope("conv"):
                hidden = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "VALID"))
            with tf.name_scope("out"):
                logits = tf.matmul(tf.reduce_mean(hidden, (1, 2)), weight)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, [kernel, weight])
        optimizer.apply_gradients(zip(gradients, [kernel, weight], strict=True))
        return loss

    return lower(step, spec(2, 6, 6, 1), ints(2))


@pytest.fixture(scope="module")
def lowered() -> LoweredProgram:
    return training_step()


def test_given_values_have_the_names_of_the_program(lowered: LoweredProgram) -> None:
    assert names_of(lowered.graph, Role.INPUT) == ["x", "y"]
    assert names_of(lowered.graph, Role.WEIGHT) == ["conv/kernel", "out/weight"]
    assert names_of(lowered.graph, Role.STATE) == []  # slots come with the update


def test_every_trained_weight_has_a_gradient_of_its_type(
    lowered: LoweredProgram,
) -> None:
    assert list(lowered.gradients) == ["conv/kernel", "out/weight"]
    for weight, gradient in lowered.gradients.items():
        assert lowered.graph.type_of(weight) == lowered.graph.type_of(gradient)


def test_the_update_and_the_batch_are_known(lowered: LoweredProgram) -> None:
    assert lowered.update == ("momentum_update", 1)
    assert (lowered.micro_batch, lowered.num_trips, lowered.accumulation) == (2, 1, 1)


def test_a_graph_survives_its_text_form(lowered: LoweredProgram) -> None:
    assert parse_graph(render_graph(lowered.graph)) == lowered.graph


def test_all_ops_know_where_they_come_from(lowered: LoweredProgram) -> None:
    ops = lowered.graph.ops
    assert {op.line.partition(":")[0] for op in ops} == {"test_lower.py"}
    assert {op.module for op in ops if op.kind == "conv"} == {"conv"}
    assert {op.module for op in ops if op.kind == "conv_weight_grad"} == {"conv"}


def test_backward_ops_have_the_line_of_their_forward_op(
    lowered: LoweredProgram,
) -> None:
    lines = {op.kind: op.line for op in lowered.graph.ops}
    assert lines["conv_weight_grad"] == lines["conv"]
    assert lines["relu_grad"] == lines["relu"]


def test_phases_follow_the_gradients(lowered: LoweredProgram) -> None:
    phases = {op.kind: op.phase for op in lowered.graph.ops}
    assert phases["conv"] is Phase.FORWARD
    assert phases["nll_loss"] is Phase.FORWARD
    assert phases["relu_grad"] is Phase.BACKWARD
    assert phases["conv_weight_grad"] is Phase.BACKWARD


def test_the_loss_goes_back_to_the_host(lowered: LoweredProgram) -> None:
    assert len(lowered.graph.outputs) == 1
    assert lowered.graph.type_of(lowered.graph.outputs[0]).shape == ()


def test_what_reads_gradients_belongs_to_the_update() -> None:
    weight = tf.Variable(tf.zeros((4, 3)), name="weight")
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, weight))
        gradient = tf.clip_by_norm(tape.gradient(loss, weight), 1.0)
        optimizer.apply_gradients([(gradient, weight)])

    lowered = lower(step, spec(2, 4))
    *_, product = of_kind(lowered.graph, "matmul")
    assert lowered.gradients["weight"] == product.outputs[0]
    clipping = [op for op in lowered.graph.ops if op.kind in ("square", "sqrt")]
    assert {op.phase for op in clipping} == {Phase.UPDATE}


def test_dead_code_is_dropped() -> None:
    def function(x: Any) -> Any:
        tf.exp(tf.matmul(x, x))
        return x + 1.0

    assert kinds(graph_of(function, spec(2, 2))) == ["add"]


def test_captured_tensors_are_constants() -> None:
    table = tf.range(4.0)
    graph = graph_of(lambda x: x * table, spec(4))
    assert len(names_of(graph, Role.CONSTANT)) == 1


def test_a_program_outlives_its_variables() -> None:
    def make() -> Any:
        weight = tf.Variable(tf.zeros((4, 3)))
        return trace(lambda x: tf.matmul(x, weight), spec(2, 4))

    graph = make()
    gc.collect()
    assert kinds(lower_graph(graph).graph) == ["matmul"]


def test_an_input_may_be_an_output() -> None:
    assert graph_of(lambda x: tf.identity(x), spec(3)).outputs == ("x",)


def test_a_shape_nobody_knows_is_refused_with_a_remedy() -> None:
    with pytest.raises(CaptureError, match="drop_remainder"):
        graph_of(lambda x: tf.matmul(x, tf.boolean_mask(x, x[0] > 0)), spec(4, 4))


def test_unknown_dimensions_follow_from_what_is_known() -> None:
    def function(x: Any) -> Any:
        rows = tf.compat.v1.placeholder_with_default(2, ())
        return tf.nn.relu(tf.reshape(x, (rows, -1)))

    graph = graph_of(function, spec(4, 3))
    assert graph.type_of(graph.outputs[0]).shape == (2, 6)


def test_feeds_are_inputs_and_what_is_enqueued_are_outputs() -> None:
    queue = tf.queue.FIFOQueue(9, [tf.float32], [(4,)])
    data = iter(tf.data.Dataset.from_tensors(tf.zeros(4)).repeat())

    def step() -> None:
        queue.enqueue(next(data) * 2.0)

    graph = graph_of(step)
    (product,) = of_kind(graph, "mul")
    assert names_of(graph, Role.INPUT) == list(product.inputs)
    assert graph.outputs == product.outputs


def test_a_gradient_may_be_a_constant() -> None:
    weight = tf.Variable(tf.zeros(3), name="weight")
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * 2.0)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    lowered = lower(step)
    assert names_of(lowered.graph, Role.CONSTANT) == [lowered.gradients["weight"]]
    assert model_program(lowered).simulation.cost.cycles > 0


def test_what_is_marked_to_be_kept_is_a_checkpoint() -> None:
    def program(x: Any) -> Any:
        kept = recomputation_checkpoint(tf.tanh(x))
        return tf.sigmoid(kept)

    notes = {op.kind: op.notes.is_checkpoint for op in graph_of(program, spec(4)).ops}
    assert notes == {"tanh": True, "sigmoid": False}
