"""Recurrent layers of Keras and of the IPU: one op, however long their sequences."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf
import tf_keras as keras
from tensorflow.compiler.plugin.poplar.ops import gen_popnn_ops

from popple.capture.tensorflow import LoweredProgram
from popple.graph import Phase
from tests.capture.tensorflow.tracing import (
    kinds,
    lower,
    model_program,
    of_kind,
    runs,
    spec,
)

CELLS = {"LSTM": "lstm", "GRU": "gru"}
UNITS = {"LSTM": 4, "GRU": 3}


def trained(layer: Any, time: int = 5, **given: Any) -> LoweredProgram:
    """A step of gradient descent on the sum of what the layer gives."""
    inputs = spec(4, time, 6)
    layer.build(inputs.shape)
    optimizer = keras.optimizers.legacy.SGD(0.1)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(x, **given)))
        weights = layer.trainable_variables
        optimizer.apply_gradients(
            zip(tape.gradient(loss, weights), weights, strict=True)
        )
        return loss

    return lower(step, inputs)


@pytest.mark.parametrize("name", CELLS)
def test_a_layer_and_its_gradient_are_an_op_each(name: str) -> None:
    graph = trained(getattr(keras.layers, name)(8)).graph
    (forward,) = of_kind(graph, "recurrent")
    (backward,) = of_kind(graph, "recurrent_grad")
    assert forward.attrs["cell"] == backward.attrs["cell"] == CELLS[name]
    assert "matmul" not in kinds(graph)
    assert forward.outputs[-1] in backward.inputs
    assert backward.phase is Phase.BACKWARD


@pytest.mark.parametrize("name", CELLS)
def test_every_weight_has_its_gradient(name: str) -> None:
    lowered = trained(getattr(keras.layers, name)(8, return_sequences=True))
    graph, width = lowered.graph, 8 * UNITS[name]
    shapes = {graph.type_of(w).shape for w in lowered.gradients}
    assert {(6, width), (8, width)} < shapes
    for weight, gradient in lowered.gradients.items():
        assert graph.type_of(weight) == graph.type_of(gradient)


def test_capture_does_not_grow_with_the_sequence() -> None:
    short, long = (trained(keras.layers.LSTM(8), time) for time in (3, 300))
    assert len(long.graph.ops) == len(short.graph.ops)


def test_a_layer_that_is_not_trained_keeps_nothing() -> None:
    layer = keras.layers.LSTM(8, return_state=True)
    (op,) = of_kind(lower(layer, spec(4, 5, 6)).graph, "recurrent")
    assert len(op.outputs) == 3  # outputs, last output, last cell


def test_both_directions_of_a_stack_are_priced() -> None:
    layer = keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True))
    lowered = trained(layer)
    assert len(of_kind(lowered.graph, "recurrent")) == 2
    assert model_program(lowered).simulation.cost.cycles > 0


def test_a_masked_layer_is_walked_step_by_step() -> None:
    mask = tf.constant([[True] * 4 + [False]] * 4)
    graph = trained(keras.layers.LSTM(8), mask=mask).graph
    assert "recurrent" not in kinds(graph)
    assert runs(graph)["matmul"] >= 5  # one for every step, at least


def gru(x: Any, weights: list[Any], **more: Any) -> Any:
    h = tf.zeros((4, 8))
    call = gen_popnn_ops.popnn_augru_layer if more else gen_popnn_ops.popnn_gru_layer
    return call(x, h, *weights, **more, **SETTINGS).output


SETTINGS = {
    "activation": "tanh",
    "recurrent_activation": "sigmoid",
    "num_channels": 8,
    "is_training": True,
}


def test_a_layer_of_the_ipu_has_one_matrix() -> None:
    def step(x: Any, kernel: Any, bias: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([kernel, bias])
            loss = tf.reduce_sum(tf.square(gru(x, [kernel, bias])))
        return tape.gradient(loss, [kernel, bias])

    lowered = lower(step, spec(5, 4, 6), spec(14, 24), spec(3, 8))
    (op,) = of_kind(lowered.graph, "recurrent_grad")
    assert op.attrs["cell"] == "gru_reset_before"
    shapes = [lowered.graph.type_of(name).shape for name in op.outputs]
    assert shapes == [(5, 4, 6), (4, 8), (14, 24), (24,)]


def test_attention_scores_have_a_gradient() -> None:
    def step(x: Any, kernel: Any, bias: Any, scores: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(scores)
            lengths = {"seq_len": tf.constant([5, 4, 3, 2]), "att_score": scores}
            loss = tf.reduce_sum(tf.square(gru(x, [kernel, bias], **lengths)))
        return tape.gradient(loss, scores)

    graph = lower(step, spec(5, 4, 6), spec(14, 24), spec(3, 8), spec(5, 4)).graph
    assert graph.type_of(graph.outputs[0]).shape == (5, 4)
