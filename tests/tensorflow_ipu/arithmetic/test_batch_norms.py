"""Batch norms over groups of replicas, and in half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ops import gen_nn_ops

NUM_REPLICAS = 4
GROUP = 2
BATCH = 2
v1 = tf.compat.v1
pytestmark = pytest.mark.usefixtures("own_pod")


def configure() -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = NUM_REPLICAS
    config.norms.experimental.distributed_batch_norm_replica_group_size = GROUP
    config.configure_ipu_system()


def norm(x: Any, **kwargs: Any) -> list[Any]:
    """A batch norm and the gradient of its output, weighted to make it interesting."""
    scale, offset = tf.constant([2.0, 1.0]), tf.constant([0.0, 1.0])
    y, mean, variance = v1.nn.fused_batch_norm(x, scale, offset, **kwargs)
    weights = tf.cast(tf.range(tf.size(x)), x.dtype)
    loss = tf.reduce_sum(y * y * tf.reshape(weights, tf.shape(x)))
    return [y, mean, variance, *tf.gradients(loss, [x, scale, offset])]


def own_part(x: Any) -> Any:
    """What one replica works on."""
    parts = tf.reshape(x, [NUM_REPLICAS, BATCH, *x.shape[1:]])
    return tf.gather(parts, ipu.replication_ops.replication_index())


def run_replicated(data: Any, **kwargs: Any) -> list[Any]:
    """What replicas compute, each of its own part of the data."""
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(x: Any) -> Any:
        return outfeed.enqueue(norm(own_part(x), **kwargs))

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        run = ipu.ipu_compiler.compile(body, [tf.constant(data)])
    with v1.Session() as session:
        session.run(run)
        return [value[0] for value in session.run(outfeed.dequeue())]


def data_of(first: bool) -> Any:
    shape = [NUM_REPLICAS * BATCH, 3, 2, 2]
    x = np.random.default_rng(1).normal(1.0, 2.0, shape).astype(np.float32)
    return np.moveaxis(x, 3, 1) if first else x


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_groups_share_their_statistics(data_format: str) -> None:
    data = data_of(data_format == "NCHW")
    with tf.Graph().as_default():
        configure()
        y, mean, variance, *_ = run_replicated(data, data_format=data_format)
        size = GROUP * BATCH
        for group in range(NUM_REPLICAS // GROUP):
            whole = tf.constant(data[group * size : (group + 1) * size])
            with v1.Session() as session:
                wanted = session.run(norm(whole, data_format=data_format)[:3])
            for replica in range(group * GROUP, (group + 1) * GROUP):
                start = replica % GROUP * BATCH
                part = wanted[0][start : start + BATCH]
                np.testing.assert_allclose(y[replica], part, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(mean[replica], wanted[1], rtol=1e-4)
                np.testing.assert_allclose(variance[replica], wanted[2], rtol=1e-4)


def test_the_gradient_is_the_same_by_operation_and_by_differentiation() -> None:
    x, upstream = data_of(False), data_of(False)[::-1]
    scale = np.array([2.0, 0.5], np.float32)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(x: Any, upstream: Any) -> Any:
        x, upstream = own_part(x), own_part(upstream)
        factors = tf.constant(scale)
        y, mean, variance, *_ = gen_nn_ops.fused_batch_norm_v3(
            x, factors, tf.zeros([2]), tf.zeros([0]), tf.zeros([0])
        )
        kept = variance * 23 / 24  # of 4 * 3 * 2 elements
        direct = gen_nn_ops.fused_batch_norm_grad_v2(upstream, x, factors, mean, kept)
        derived = tf.gradients(y, [x, factors], upstream)
        return outfeed.enqueue([*direct[:2], *derived])

    with tf.Graph().as_default():
        configure()
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            inputs = [tf.constant(x), tf.constant(upstream.copy())]
            run = ipu.ipu_compiler.compile(body, inputs)
        with v1.Session() as session:
            session.run(run)
            dx, dscale, dx_too, dscale_too = session.run(outfeed.dequeue())
    np.testing.assert_allclose(dx, dx_too, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(dscale, dscale_too, rtol=1e-3, atol=1e-4)


def test_running_statistics_move_by_a_share() -> None:
    old = {"mean": tf.constant([1.0, 2.0]), "variance": tf.constant([3.0, 4.0])}
    with tf.Graph().as_default():
        configure()
        _, full, *_ = run_replicated(data_of(False))
        given = {name: tf.constant(value.numpy()) for name, value in old.items()}
        _, part, *_ = run_replicated(
            data_of(False), exponential_avg_factor=0.25, **given
        )
    # Three quarters of the old mean, one quarter of this batch's.
    np.testing.assert_allclose(part, 0.75 * np.array([1, 2]) + 0.25 * full, rtol=1e-4)


def test_no_share_is_the_whole_batch() -> None:
    given = {"mean": tf.zeros([2]).numpy(), "variance": tf.ones([2]).numpy()}
    with tf.Graph().as_default():
        configure()
        _, expected, *_ = run_replicated(data_of(False))
        _, mean, *_ = run_replicated(
            data_of(False), exponential_avg_factor=None, **given
        )
    np.testing.assert_allclose(mean, expected, rtol=1e-5)


def test_scales_may_be_in_half_precision() -> None:
    x = tf.constant(data_of(False), tf.float16)
    scale, offset = tf.ones([2], tf.float16), tf.zeros([2], tf.float16)
    y, mean, variance = v1.nn.fused_batch_norm(x, scale, offset)
    assert {y.dtype, mean.dtype, variance.dtype} == {tf.float16}
    np.testing.assert_allclose(tf.reduce_mean(y, [0, 1, 2]), [0, 0], atol=2e-3)
