"""Training equals the same training written by hand, with plain TensorFlow.

A network of two layers learns from batches 0, 1, 2, .. . By hand: replica r of R takes
batches r, r + R, .. ; gradients of all batches of an update are taken with the same
weights, reduced, averaged over the replicas, and applied once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

v1 = tf.compat.v1
pipelining = ipu.pipelining_ops
Schedule = pipelining.PipelineSchedule
Recomputation = pipelining.RecomputationMode
Method = ipu.gradient_accumulation.GradientAccumulationReductionMethod
Optimizer = Callable[[], Any]

NUM_UPDATES = 3
DATA = np.random.default_rng(1).normal(size=(64, 5, 3)).astype(np.float32)
WEIGHTS = {
    name: np.random.default_rng(2).normal(size=shape).astype(np.float32)
    for name, shape in (("a", (3, 4)), ("b", (4,)), ("c", (4, 2)))
}


@pytest.fixture(autouse=True)
def no_configuration() -> Iterator[None]:
    yield
    ipu.config.reset_ipu_configuration()


def first_layer(x: Any, a: Any, b: Any) -> Any:
    return tf.tanh(x @ a + b)


def loss_of(hidden: Any, c: Any) -> Any:
    return tf.reduce_mean(tf.square(hidden @ c - 1.0))


def descent() -> Any:
    return v1.train.GradientDescentOptimizer(0.05)


def momentum() -> Any:
    return v1.train.MomentumOptimizer(0.05, 0.9)


def adam() -> Any:
    return v1.train.AdamOptimizer(0.05)


@dataclass
class Trained:
    """The losses, one row per step and one column per replica, and the weights."""

    losses: Any
    weights: dict[str, Any]

    def assert_equal(self, other: Trained) -> None:
        np.testing.assert_allclose(self.losses, other.losses, rtol=1e-5, atol=1e-6)
        for name, weight in self.weights.items():
            np.testing.assert_allclose(
                weight, other.weights[name], rtol=1e-5, atol=1e-6
            )


def by_hand(
    optimizer: Optimizer,
    count: int,
    replicas: int = 1,
    method: Any = Method.SUM,
    data: Any = DATA,
) -> Trained:
    apply = optimizer()
    weights = [tf.Variable(value) for value in WEIGHTS.values()]
    a, b, c = weights
    losses: list[list[Any]] = []
    batches = iter(data)
    share = replicas if method is Method.SUM else replicas * count
    for _ in range(NUM_UPDATES):
        totals = [tf.zeros_like(weight) for weight in weights]
        for _ in range(count):
            losses.append([])
            for _ in range(replicas):
                with tf.GradientTape() as tape:
                    loss = loss_of(first_layer(next(batches), a, b), c)
                losses[-1].append(loss.numpy())
                gradients = tape.gradient(loss, weights)
                totals = [t + g for t, g in zip(totals, gradients, strict=True)]
        reduced = [total / share for total in totals]
        apply.apply_gradients(zip(reduced, weights, strict=True))
    found = {name: w.numpy() for name, w in zip(WEIGHTS, weights, strict=True)}
    return Trained(np.array(losses), found)


def variable(name: str) -> Any:
    return v1.get_variable(name, initializer=WEIGHTS[name], use_resource=True)


def first_stage(x: Any) -> Any:
    return first_layer(x, variable("a"), variable("b"))


def last_stage(hidden: Any) -> Any:
    return loss_of(hidden, variable("c"))


def configure(num_ipus: int, recompute: bool = False) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.allow_recompute = recompute
    config.configure_ipu_system()


Build = Callable[[Any, Any], Any]


def run(build: Build, replicas: int, num_runs: int = 1) -> Trained:
    """Train with the program that `build` makes of an infeed and an outfeed."""
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensor_slices(DATA)
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            program = ipu.ipu_compiler.compile(lambda: build(infeed, outfeed))
        dequeued = outfeed.dequeue()
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), infeed.initializer])
            for _ in range(num_runs):
                session.run(program)
            losses = np.reshape(session.run(dequeued), [-1, replicas])
            weights = {v.op.name: session.run(v) for v in v1.trainable_variables()}
        return Trained(losses, weights)


def averaged(optimizer: Optimizer, replicas: int) -> Any:
    if replicas == 1:
        return optimizer()
    return ipu.optimizers.CrossReplicaOptimizer(optimizer())


def pipelined(
    optimizer: Optimizer, count: int, replicas: int = 1, **options: Any
) -> Trained:
    def how(loss: Any) -> Any:
        return pipelining.OptimizerFunctionOutput(averaged(optimizer, replicas), loss)

    def build(infeed: Any, outfeed: Any) -> Any:
        return pipelining.pipeline(
            [first_stage, last_stage],
            count,
            repeat_count=NUM_UPDATES,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=how,
            **options,
        )

    return run(build, replicas)


def looped(make: Optimizer, num_steps: int, replicas: int, num_runs: int) -> Trained:
    """A loop of steps over a model on one IPU."""

    def build(infeed: Any, outfeed: Any) -> Any:
        def step(x: Any) -> Any:
            loss = last_stage(first_stage(x))
            return outfeed.enqueue(loss), make().minimize(loss)

        return ipu.loops.repeat(num_steps // num_runs, step, infeed_queue=infeed)

    return run(build, replicas, num_runs)


@pytest.mark.parametrize(
    ("schedule", "replicas", "optimizer"),
    [
        (Schedule.Grouped, 1, adam),
        (Schedule.Grouped, 4, momentum),
        (Schedule.Interleaved, 1, momentum),
        (Schedule.Interleaved, 2, adam),
        (Schedule.Sequential, 1, momentum),
        (Schedule.Sequential, 2, adam),
    ],
)
def test_pipelines(schedule: Any, replicas: int, optimizer: Optimizer) -> None:
    configure(2 * replicas)
    found = pipelined(optimizer, 4, replicas, pipeline_schedule=schedule)
    found.assert_equal(by_hand(optimizer, 4, replicas))


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("replicas", [1, 2])
def test_reductions_in_pipelines(method: Any, replicas: int) -> None:
    configure(2 * replicas)
    found = pipelined(momentum, 4, replicas, reduction_method=method)
    found.assert_equal(by_hand(momentum, 4, replicas, method))


@pytest.mark.parametrize(
    ("schedule", "mode"), list(zip(Schedule, Recomputation, strict=True))
)
def test_recomputation_in_pipelines(schedule: Any, mode: Any) -> None:
    configure(4, recompute=True)
    found = pipelined(
        momentum, 4, 2, pipeline_schedule=schedule, recomputation_mode=mode
    )
    found.assert_equal(by_hand(momentum, 4, 2))


@pytest.mark.parametrize("replicas", [1, 2])
def test_serialised_batches_in_pipelines(replicas: int) -> None:
    configure(replicas)
    found = pipelined(momentum, 2, replicas, batch_serialization_iterations=3)
    found.assert_equal(by_hand(momentum, 6, replicas))


def test_a_stage_may_be_on_no_ipu_in_particular() -> None:
    configure(1)
    found = pipelined(momentum, 4, device_mapping=[-1, 0])
    found.assert_equal(by_hand(momentum, 4))


@pytest.mark.parametrize("count", [1, 8])
def test_lengths_of_pipelines(count: int) -> None:
    configure(2)
    found = pipelined(adam, count, pipeline_schedule=Schedule.Sequential)
    found.assert_equal(by_hand(adam, count))


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("replicas", [1, 2])
def test_accumulation_in_loops(method: Any, replicas: int) -> None:
    def make() -> Any:
        return ipu.optimizers.GradientAccumulationOptimizerV2(
            averaged(momentum, replicas), 4, reduction_method=method
        )

    configure(replicas)
    found = looped(make, 4 * NUM_UPDATES, replicas, NUM_UPDATES)
    found.assert_equal(by_hand(momentum, 4, replicas, method))


@pytest.mark.parametrize(("replicas", "num_runs"), [(1, 1), (2, 1), (4, NUM_UPDATES)])
def test_averages_over_replicas_in_loops(replicas: int, num_runs: int) -> None:
    configure(replicas)
    found = looped(lambda: averaged(adam, replicas), NUM_UPDATES, replicas, num_runs)
    found.assert_equal(by_hand(adam, 1, replicas))


def test_replicas_that_exchange_nothing_learn_alone() -> None:
    configure(2)
    found = looped(momentum, NUM_UPDATES, 2, NUM_UPDATES)
    first, second = (by_hand(momentum, 1, data=DATA[r::2]) for r in (0, 1))
    # What the host sees are the weights of replica 0.
    expected = Trained(np.hstack([first.losses, second.losses]), first.weights)
    found.assert_equal(expected)


def test_stages_may_change_variables_batch_by_batch() -> None:
    configure(2)

    def counting_stage(x: Any) -> Any:
        count = v1.get_variable("n", initializer=0, trainable=False, use_resource=True)
        with tf.control_dependencies([count.assign_add(1)]):
            return count.read_value() + 0 * tf.cast(x[0, 0], tf.int32)

    def build(infeed: Any, outfeed: Any) -> Any:
        feeds = {"infeed_queue": infeed, "outfeed_queue": outfeed}
        stages = [counting_stage, lambda count: count]
        return pipelining.pipeline(stages, 4, repeat_count=2, **feeds)

    assert run(build, 1).losses.flatten().tolist() == list(range(1, 9))


def from_strategy(make: Optimizer, replicas: int) -> Trained:
    """Train a pipeline of TensorFlow 2, with a Keras optimiser."""
    strategy = ipu.ipu_strategy.IPUStrategy()
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with strategy.scope():
        a, b, c = (tf.Variable(value) for value in WEIGHTS.values())
        data = tf.data.Dataset.from_tensor_slices(DATA)
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
        _ = infeed.initializer
        optimizer = make()

        @tf.function
        def program() -> None:
            pipelining.pipeline(
                [lambda x: first_layer(x, a, b), lambda hidden: loss_of(hidden, c)],
                4,
                repeat_count=NUM_UPDATES,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                optimizer_function=lambda loss: pipelining.OptimizerFunctionOutput(
                    optimizer, loss, variables=[a, b, c]
                ),
            )

        strategy.run(program)
    (losses,) = outfeed.dequeue()
    weights = [variable.numpy() for variable in (a, b, c)]
    found = dict(zip(WEIGHTS, weights, strict=True))
    return Trained(np.reshape(losses, [-1, replicas]), found)


@pytest.mark.parametrize("replicas", [1, 2])
def test_strategies_sum_over_replicas(replicas: int) -> None:
    from tensorflow.python.keras.optimizer_v2 import gradient_descent

    configure(2 * replicas)
    found = from_strategy(lambda: gradient_descent.SGD(0.05, 0.9), replicas)
    # By hand they are averaged; with so many times the rate that is the sum.
    rate = 0.05 * replicas
    expected = by_hand(lambda: v1.train.MomentumOptimizer(rate, 0.9), 4, replicas)
    found.assert_equal(expected)
