"""Labels that name no class, in programs on the IPU and elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

import popple  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")
LOGITS = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.0], [3.0, 1.0, 2.0]], np.float32)


def loss_and_gradient(labels: list[int], dtype: Any = tf.float32) -> Any:
    @tf.function
    def program(logits: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return loss, tape.gradient(loss, logits)

    strategy = ipu.ipu_strategy.IPUStrategy()
    results = strategy.run(program, [tf.constant(LOGITS, dtype)])
    return [result.numpy() for result in results]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
def test_a_wrong_label_spoils_its_own_row(dtype: Any) -> None:
    loss, gradient = loss_and_gradient([2, 3, -1], dtype)
    right, slope = loss_and_gradient([2, 0, 0], dtype)
    assert np.isnan(loss).tolist() == [False, True, True]
    assert np.isnan(gradient).all(axis=1).tolist() == [False, True, True]
    assert loss[0] == right[0]
    assert np.array_equal(gradient[0], slope[0])


def test_elsewhere_it_is_an_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 3"):
        tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 3], LOGITS)


def test_it_costs_nothing() -> None:
    strategy = ipu.ipu_strategy.IPUStrategy()

    @tf.function
    def program(labels: Any, logits: Any) -> Any:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    strategy.run(program, [tf.constant([0, 1, 2]), tf.constant(LOGITS)])
    kinds = [op.kind for op in popple.modelled(strategy).graph.ops]
    assert not {"where", "select", "add", "greater_equal", "less"} & set(kinds)
    assert kinds
