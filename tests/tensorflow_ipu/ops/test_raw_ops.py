"""Raw operators against NumPy: recurrent layers, group norms, tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.plugin.poplar.ops import (
    gen_popnn_ops,
    gen_popops_ops,
    gen_poprand_ops,
    gen_poputil_ops,
    gen_sendrecv_ops,
)

LENGTH, BATCH, INPUTS, UNITS = 3, 2, 4, 5


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def draw(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def numpy_lstm(x: Any, h: Any, c: Any, kernel: Any, biases: Any) -> Any:
    outputs = []
    for step in x:
        summed = np.concatenate([step, h], 1) @ kernel + biases.reshape(-1)
        i, f, n, o = np.split(summed, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(n)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs), c


def lstm(seq_len: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
    inputs = (draw(LENGTH, BATCH, INPUTS), draw(BATCH, UNITS), draw(BATCH, UNITS))
    weights = (draw(INPUTS + UNITS, 4 * UNITS), draw(4, UNITS))
    result = gen_popnn_ops.popnn_dynamic_lstm_layer(
        *inputs, *weights, seq_len, "tanh", "sigmoid", UNITS, True, **kwargs
    )
    return inputs, weights, result


def test_lstm() -> None:
    inputs, weights, result = lstm(None)
    outputs, c = numpy_lstm(*inputs, *weights)
    np.testing.assert_allclose(result.output, outputs, atol=1e-5)
    np.testing.assert_allclose(result.output_c_state, c, atol=1e-5)


def test_lstm_of_different_lengths() -> None:
    inputs, weights, result = lstm(np.array([3, 1]), preserve_final_state=True)
    outputs, _ = numpy_lstm(*inputs, *weights)
    _, after_one = numpy_lstm(inputs[0][:1], *inputs[1:], *weights)
    assert not np.any(result.output[1:, 1])
    np.testing.assert_allclose(result.output[:, 0], outputs[:, 0], atol=1e-5)
    np.testing.assert_allclose(result.output_c_state[1], after_one[1], atol=1e-5)


def test_gru_mixes_old_and_new_by_the_update_gate() -> None:
    x, h = draw(1, BATCH, INPUTS), draw(BATCH, UNITS)
    kernel, biases = draw(INPUTS + UNITS, 3 * UNITS), draw(3, UNITS)
    result = gen_popnn_ops.popnn_gru_layer(
        x, h, kernel, biases, "tanh", "sigmoid", UNITS, False
    )
    of_x, of_h = np.split(x[0] @ kernel[:INPUTS], 3, 1), np.split(kernel[INPUTS:], 3, 1)
    z = sigmoid(of_x[0] + h @ of_h[0] + biases[0])
    r = sigmoid(of_x[1] + h @ of_h[1] + biases[1])
    n = np.tanh(of_x[2] + (r * h) @ of_h[2] + biases[2])
    np.testing.assert_allclose(result.output[0], z * h + (1 - z) * n, atol=1e-5)


def test_attention_of_one_forgets_the_old_state() -> None:
    x, h = draw(1, BATCH, INPUTS), draw(BATCH, UNITS)
    kernel, biases = draw(INPUTS + UNITS, 3 * UNITS), draw(3, UNITS)
    common = (kernel, biases)
    ends = [
        gen_popnn_ops.popnn_augru_layer(
            x, h * 0, *common, [1, 1], np.ones([1, BATCH], np.float32) * score,
            "tanh", "sigmoid", UNITS, False, reset_after=False,
        ).output.numpy()
        for score in (0.0, 1.0)
    ]  # fmt: skip
    # With h = 0 the new state is (1 - z (1 - score)) n: n itself if the score is 1.
    assert np.all(np.abs(ends[0]) <= np.abs(ends[1]) + 1e-6)


def test_recurrent_layers_have_gradients() -> None:
    kernel = tf.Variable(draw(INPUTS + UNITS, 4 * UNITS))
    with tf.GradientTape() as tape:
        result = gen_popnn_ops.popnn_lstm_layer(
            draw(LENGTH, BATCH, INPUTS), draw(BATCH, UNITS), draw(BATCH, UNITS), kernel,
            draw(4, UNITS), "tanh", "sigmoid", UNITS, True, options="{}",
        )  # fmt: skip
        loss = tf.reduce_sum(result.output)
    gradient: Any = tape.gradient(loss, kernel)
    assert np.any(gradient)


def test_unknown_tuning_is_refused() -> None:
    with pytest.raises(TypeError, match="nonsense"):
        lstm(None, nonsense=1)


@pytest.mark.parametrize("name", ["options", "options_bwd"])
def test_a_part_of_memory_is_not_negative(name: str) -> None:
    with pytest.raises(tf.errors.InternalError, match=f"-2.0 in {name}"):
        lstm(None, **{name: '{"availableMemoryProportion": -2.0}'})


@pytest.mark.parametrize("strided", [True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_group_norm(strided: bool, data_format: str) -> None:
    shape = (2, 3, 3, 6) if data_format == "NHWC" else (2, 6, 3, 3)
    x, gamma, beta = draw(*shape), draw(6), draw(6)
    arguments = (data_format, 1e-3, 2, strided)
    result = gen_popnn_ops.popnn_group_norm_training(x, gamma, beta, *arguments)
    again = gen_popnn_ops.popnn_group_norm_inference(
        x, gamma, beta, result.mean, result.inv_std_dev, *arguments
    )
    np.testing.assert_allclose(result.output, again, atol=1e-6)
    # Example 1, group 0: channels 0, 2, 4, or the first three of them.
    channels = [0, 2, 4] if strided else [0, 1, 2]
    members = np.take(x[1], channels, axis=data_format.index("C") - 1)
    assert float(result.mean[2]) == pytest.approx(members.mean(), abs=1e-5)


def test_rows_of_a_table() -> None:
    table = tf.zeros([3, 2])
    out = gen_popops_ops.ipu_multi_update_add(
        table, indices=[[0], [2], [2]], updates=[[1.0, 1.0]] * 3, scale=2
    )
    assert out.numpy().tolist() == [[2, 2], [0, 0], [4, 4]]
    assert gen_popops_ops.ipu_multi_slice(out, [2]).numpy().tolist() == [[4, 4]]


def test_one_replica_is_its_own_sum() -> None:
    x = tf.constant([1.0, 2.0])
    assert gen_popops_ops.ipu_cross_replica_sum(x).numpy().tolist() == [1.0, 2.0]
    assert gen_poputil_ops.ipu_replication_normalise(x).numpy().tolist() == [1.0, 2.0]


def test_accumulators_keep_their_type() -> None:
    out = gen_poputil_ops.gradient_accumulator_add_with_scale(
        tf.constant([4.0], tf.float16), tf.constant([1.0]), 0.5
    )
    assert (out.dtype, float(out[0])) == (tf.float16, 3.0)


def test_dropout_follows_from_its_seed() -> None:
    x = tf.ones([64])
    first = gen_poprand_ops.ipu_dropout(x, rate=0.5, scale=2.0)
    again = gen_poprand_ops.ipu_dropout_with_seed(x, first.seed, rate=0.5, scale=2.0)
    assert np.array_equal(first.output, again.output)
    assert set(first.output.numpy()) == {0.0, 2.0}


def test_what_is_sent_is_received() -> None:
    ends: dict[str, Any] = {
        "send_device": "/device:IPU:0",
        "send_device_incarnation": 0,
        "recv_device": "/device:CPU:0",
    }
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with pytest.raises(ValueError, match="Nothing called 'x'"):
            gen_sendrecv_ops.ipu_recv_at_host(tf.float32, "x", **ends)
        gen_sendrecv_ops.ipu_send_to_host(tf.constant(3.0), "x", **ends)
        received = gen_sendrecv_ops.ipu_recv_at_host(tf.float32, "x", **ends)
        assert session.run(received) == 3.0
