"""Programs of TensorFlow 1 whose device is configured after they are built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph
    ipu.config.reset_ipu_configuration()


def configure(num_ipus: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.configure_ipu_system()


def compiled(function: Any) -> Any:
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(function)


def make_infeed() -> Any:
    numbers = tf.data.Dataset.range(100).map(lambda x: tf.cast(x, tf.float32))
    return ipu.ipu_infeed_queue.IPUInfeedQueue(numbers)


def test_variables_of_the_optimizer_are_made_once() -> None:
    infeed = make_infeed()

    def body(x: Any) -> Any:
        weight = v1.get_variable("w", initializer=1.0, use_resource=True)
        optimizer = ipu.optimizers.CrossReplicaGradientAccumulationOptimizerV2(
            v1.train.AdamOptimizer(0.5), 2
        )
        return optimizer.minimize(weight * x)

    program = compiled(lambda: ipu.loops.repeat(2, body, infeed_queue=infeed))
    initialize = v1.global_variables_initializer()
    names = [variable.op.name for variable in v1.global_variables()]
    configure(2)
    assert [variable.op.name for variable in v1.global_variables()] == names
    with v1.Session() as session:
        session.run([initialize, infeed.initializer])
        session.run(program)
        # Whatever the gradient, Adam's first step is as long as its rate.
        weight = session.run(v1.trainable_variables()[0])
        assert np.isclose(weight, 0.5, atol=1e-5)


@pytest.mark.parametrize("num_ipus", [1, 2])
def test_losses_are_collected_from_the_program_that_runs(num_ipus: int) -> None:
    infeed, outfeed = make_infeed(), ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    v1.add_to_collection("losses", tf.constant(10.0))  # of the program around

    def body(x: Any) -> Any:
        v1.add_to_collection("losses", x)
        return outfeed.enqueue(tf.add_n(v1.get_collection("losses")))

    program = compiled(lambda: ipu.loops.repeat(2, body, infeed_queue=infeed))
    dequeued = outfeed.dequeue()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.floating_point_behaviour.oflo = True  # another arithmetic than before
    config.configure_ipu_system()
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(program)
        losses = session.run(dequeued).ravel().tolist()
    assert losses == [10.0 + x for x in range(2 * num_ipus)]


@pytest.mark.parametrize("first", [None, 2])
def test_what_was_dequeued_follows_the_program(first: int | None) -> None:
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    if first is not None:
        configure(first)
    program = compiled(lambda: ipu.loops.repeat(2, lambda: outfeed.enqueue(7)))
    dequeued = outfeed.dequeue()
    for num_ipus, expected in ((4, [[7] * 4] * 2), (1, [7, 7])):
        configure(num_ipus)
        with v1.Session() as session:
            session.run(program)
            assert session.run(dequeued).tolist() == expected


def test_an_infeed_serves_one_number_of_replicas() -> None:
    configure(4)
    infeed = make_infeed()

    def on_two_ipus(x: Any) -> Any:
        with ipu.scopes.ipu_shard(1):
            return tf.group(x + 1)

    sharded = compiled(lambda: ipu.loops.repeat(1, on_two_ipus, [], infeed))
    other = compiled(lambda: ipu.loops.repeat(1, lambda x: tf.group(x), [], infeed))
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(sharded)
        with pytest.raises(tf.errors.FailedPreconditionError, match="of 2 replicas"):
            session.run(other)


def test_a_program_that_looks_at_no_replica_is_traced_once() -> None:
    configure(4)
    traces = []

    def program() -> Any:
        traces.append(1)
        with ipu.scopes.ipu_shard(1):
            return tf.constant(3.0) + 1

    result = compiled(program)
    with v1.Session() as session:
        assert session.run(result) == [4.0]
    assert len(traces) == 1


def test_an_outfeed_of_nothing_is_a_wrong_argument() -> None:
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    program = compiled(lambda: outfeed.enqueue(tf.zeros([2, 0])))
    with (
        v1.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="dimension of size 0"),
    ):
        session.run(program)
