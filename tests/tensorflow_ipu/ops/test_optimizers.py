"""Optimisers of TensorFlow 1: accumulation, replicas, mapped gradients, shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

v1 = tf.compat.v1
DEVICE = "/device:IPU:0"
Method = ipu.gradient_accumulation.GradientAccumulationReductionMethod


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield
    ipu.config.reset_ipu_configuration()


def configure(num_ipus: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.configure_ipu_system()


def train(make: Any, num_iterations: int, num_runs: int = 1, num_ipus: int = 1) -> Any:
    """The weight and the losses of x * w, trained on 0, 1, 2, .. from w = 1."""
    configure(num_ipus)
    data = tf.data.Dataset.range(100).map(lambda x: tf.cast(x, tf.float32))
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(x: Any) -> Any:
        loss = x * v1.get_variable("w", initializer=1.0, use_resource=True)
        return outfeed.enqueue(loss), make().minimize(loss)

    with ipu.scopes.ipu_scope(DEVICE):
        loop = ipu.ipu_compiler.compile(
            lambda: ipu.loops.repeat(num_iterations, body, infeed_queue=infeed)
        )
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        for _ in range(num_runs):
            session.run(loop)
        weight = session.run(v1.trainable_variables()[0])
        return weight, session.run(dequeued)


def accumulating(count: int, method: Any = Method.SUM, **options: Any) -> Any:
    descent = v1.train.GradientDescentOptimizer(0.01)
    return ipu.optimizers.GradientAccumulationOptimizerV2(
        descent, count, reduction_method=method, **options
    )


@pytest.mark.parametrize("method", list(Method))
def test_gradients_are_applied_every_few_batches(method: Any) -> None:
    weight, losses = train(lambda: accumulating(3, method), 6)
    share = 1 if method is Method.SUM else 3
    first = 1 - 0.01 * (0 + 1 + 2) / share
    assert np.allclose(losses, [0, 1, 2, 3 * first, 4 * first, 5 * first])
    assert np.isclose(weight, first - 0.01 * (3 + 4 + 5) / share)


def test_every_run_starts_with_empty_sums() -> None:
    weight, _ = train(lambda: accumulating(2), 2, num_runs=2)
    assert np.isclose(weight, 1 - 0.01 * (0 + 1) - 0.01 * (2 + 3))


def test_slots_are_updated_once_per_application() -> None:
    def momentum() -> Any:
        return ipu.optimizers.GradientAccumulationOptimizer(
            v1.train.MomentumOptimizer(0.01, 0.5), 2
        )

    weight, _ = train(momentum, 4)
    # Velocities: 0 + 1, then half of that and 2 + 3.
    assert np.isclose(weight, 1 - 0.01 * 1 - 0.01 * (0.5 * 1 + 5))


def test_a_global_step_counts_applications() -> None:
    configure(1)
    step = v1.train.get_or_create_global_step()

    def body() -> Any:
        loss = v1.get_variable("w", initializer=1.0, use_resource=True) * 1.0
        return accumulating(2).minimize(loss, global_step=step)

    with ipu.scopes.ipu_scope(DEVICE):
        loop = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(6, body))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(loop)
        assert session.run(step) == 3


@pytest.mark.parametrize("older", [False, True])
def test_sums_are_averaged_over_replicas(older: bool) -> None:
    def make() -> Any:
        descent = v1.train.GradientDescentOptimizer(0.01)
        if older:
            return ipu.optimizers.CrossReplicaGradientAccumulationOptimizer(descent, 2)
        return ipu.optimizers.CrossReplicaGradientAccumulationOptimizerV2(descent, 2)

    weight, losses = train(make, 2, num_ipus=2)
    assert losses.tolist() == [[0, 1], [2, 3]]
    assert np.isclose(weight, 1 - 0.01 * ((0 + 2) + (1 + 3)) / 2)


def test_gradients_are_averaged_over_replicas() -> None:
    def make() -> Any:
        descent = v1.train.GradientDescentOptimizer(0.01)
        return ipu.optimizers.CrossReplicaOptimizer(descent)

    weight, _ = train(make, 1, num_ipus=2)
    assert np.isclose(weight, 1 - 0.01 * (0 + 1) / 2)


def test_a_loop_must_not_end_within_an_accumulation() -> None:
    with pytest.raises(
        tf.errors.FailedPreconditionError,
        match="gradient accumulation operation with 4",
    ):
        train(lambda: accumulating(4), 6)


def test_accumulation_needs_a_loop() -> None:
    loss = v1.get_variable("w", initializer=1.0, use_resource=True) * 2
    with pytest.raises(tf.errors.FailedPreconditionError, match="outside of a loop"):
        accumulating(2).minimize(loss)


def test_arguments_are_checked() -> None:
    adam = v1.train.AdamOptimizer()
    with pytest.raises(ValueError, match="must be a positive number"):
        accumulating(0)
    with pytest.raises(ValueError, match="Cannot parse sometimes"):
        accumulating(2, "sometimes")
    with pytest.raises(ValueError, match="only supports GradientDescentOptimizer"):
        ipu.optimizers.GradientAccumulationOptimizer(adam, 2)
    ipu.optimizers.GradientAccumulationOptimizer(adam, 2, verify_usage=False)


def test_methods_are_known_by_name() -> None:
    assert Method.parse("Running_Mean") is Method.RUNNING_MEAN
    with pytest.raises(ValueError, match="Cannot parse 1 as one of"):
        Method.parse(1)


def test_gradients_are_mapped_before_they_are_applied() -> None:
    def decay(gradient: Any, variable: Any) -> Any:
        return gradient + 10 * variable

    def make() -> Any:
        descent = v1.train.GradientDescentOptimizer(0.01)
        return ipu.optimizers.MapGradientOptimizer(descent, decay)

    weight, _ = train(make, 2)
    first = 1 - 0.01 * (0 + 10 * 1)
    assert np.isclose(weight, first - 0.01 * (1 + 10 * first))


def test_gradients_go_to_the_shard_of_their_operation() -> None:
    with ipu.scopes.ipu_shard(1):
        weight = v1.get_variable("w", initializer=[1.0], use_resource=True)
        loss = tf.exp(weight)
    descent = v1.train.GradientDescentOptimizer(0.1)
    sharded = ipu.optimizers.ShardedOptimizer(descent)
    ((gradient, _),) = sharded.compute_gradients(loss)
    assert ipu.sharding.get_sharding(gradient.op) == [1]


def test_a_wrapper_passes_everything_on() -> None:
    weight = v1.get_variable("w", initializer=1.0, use_resource=True)
    momentum = v1.train.MomentumOptimizer(0.1, 0.9)
    wrapper = ipu.optimizers.IpuOptimizer(momentum)
    wrapper.minimize(weight * 2)
    assert wrapper.get_name() == "Momentum"
    assert wrapper.get_slot_names() == ["momentum"]
    assert wrapper.variables() == [wrapper.get_slot(weight, "momentum")]


def test_keras_optimizers_are_not_wrapped() -> None:
    from tensorflow.python.keras.optimizer_v2 import gradient_descent

    with pytest.raises(ValueError, match=r"keras\.ipu\.optimizers"):
        ipu.optimizers.IpuOptimizer(gradient_descent.SGD())


def test_the_settings_of_a_wrapped_optimiser_are_set_on_it() -> None:
    from keras.ipu.optimizers import ALSGradientAccumulationOptimizer, ALSOptimizerSGD

    inner = ALSOptimizerSGD(0.1)
    outer = ALSGradientAccumulationOptimizer(inner, 4)
    with pytest.raises(AttributeError, match="update_frequency belongs to the optim"):
        outer.update_frequency = 2
    inner.update_frequency = 2
    assert outer.update_frequency == 2
