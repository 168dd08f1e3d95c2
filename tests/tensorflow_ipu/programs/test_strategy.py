"""IPUStrategy: functions as programs, data sets as infeeds, replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_device() -> Iterator[None]:
    yield
    ipu.config.reset_ipu_configuration()


def make_strategy(num_ipus: int = 1) -> Any:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy()


def numbers() -> Any:
    return tf.data.Dataset.range(100).map(lambda x: tf.cast(x, tf.float32))


@pytest.mark.parametrize("num_ipus", [1, 2])
def test_a_function_reads_a_data_set_in_turn(num_ipus: int) -> None:
    strategy = make_strategy(num_ipus)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    @tf.function(jit_compile=True)
    def steps(iterator: Any, count: Any) -> Any:
        for _ in tf.range(count):
            outfeed.enqueue(next(iterator))

    with strategy.scope():
        strategy.run(steps, [iter(numbers()), tf.constant(2)])
    expected = [0, 1] if num_ipus == 1 else [[0, 1], [2, 3]]
    assert [element.numpy().tolist() for element in outfeed] == expected


def test_gradients_summed_over_replicas_train_one_model() -> None:
    strategy = make_strategy(2)
    with strategy.scope():
        weight = tf.Variable(1.0)

        @tf.function
        def step(iterator: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = weight * next(iterator)
            gradient = tape.gradient(loss, weight)
            replica = tf.distribute.get_replica_context()
            weight.assign_sub(0.1 * replica.all_reduce("sum", gradient))
            return loss

        strategy.run(step, [iter(numbers().skip(1))])
    # The gradients are 1 in replica 0 and 2 in replica 1.
    assert weight.numpy() == pytest.approx(1.0 - 0.1 * (1 + 2))


def test_structures_pass_through_replicated_functions() -> None:
    strategy = make_strategy(2)

    @tf.function
    def swap(pair: Any, *, scale: float = 2.0) -> Any:
        return {"first": pair["b"] * scale, "second": [pair["a"]]}

    pair = {"a": tf.constant(1.0), "b": tf.constant(2.0)}
    result = strategy.run(swap, [pair], {"scale": 3.0})
    assert result["first"].numpy() == 6.0
    assert result["second"][0].numpy() == 1.0


def test_python_functions_need_tracing() -> None:
    with pytest.raises(ValueError, match="does not support eager execution"):
        make_strategy().run(lambda: 1)


def test_double_precision_is_refused() -> None:
    strategy = make_strategy()
    with pytest.raises(TypeError, match="Unsupported data type for input: float64"):
        strategy.run(tf.function(lambda x: x), [tf.constant(1.0, tf.float64)])


def test_elements_are_for_programs_only() -> None:
    with (
        make_strategy().scope(),
        pytest.raises(RuntimeError, match="Accessing dataset elements"),
    ):
        next(iter(numbers()))


def test_one_replica_as_far_as_tensorflow_knows() -> None:
    assert make_strategy(4).num_replicas_in_sync == 1


def test_another_number_of_ipus_traces_anew() -> None:
    @tf.function
    def count() -> Any:
        return ipu.cross_replica_ops.cross_replica_sum(tf.constant(1.0))

    assert make_strategy(2).run(count).numpy() == 2.0
    ipu.config.reset_ipu_configuration()
    assert make_strategy(4).run(count).numpy() == 4.0


def test_a_failed_assertion_leaves_variables_as_they_were() -> None:
    counter = tf.Variable(1.0)

    @tf.function
    def step(x: Any) -> Any:
        counter.assign_add(1.0)
        tf.debugging.Assert(x > 0.0, [x])

    with pytest.raises(tf.errors.InternalError, match="assertion failed"):
        make_strategy().run(step, [tf.constant(-1.0)])
    assert counter.numpy() == 1.0


def test_channels_first_runs_as_on_the_device() -> None:
    images = tf.random.stateless_normal([2, 3, 8, 8], seed=[1, 2])
    kernel = tf.random.stateless_normal([3, 3, 3, 4], seed=[3, 4])

    @tf.function
    def first() -> Any:
        x = tf.nn.conv2d(images, kernel, 1, "SAME", data_format="NCHW")
        return tf.nn.avg_pool2d(x, 2, 2, "SAME", data_format="NCHW")

    last = tf.nn.conv2d(tf.transpose(images, [0, 2, 3, 1]), kernel, 1, "SAME")
    expected = tf.transpose(tf.nn.avg_pool2d(last, 2, 2, "SAME"), [0, 3, 1, 2])
    found = make_strategy().run(first)
    assert abs(found - expected).numpy().max() < 1e-5


@pytest.mark.parametrize("ordinal", [0, 1])
def test_a_variable_says_for_which_ipu_it_was_made(ordinal: int) -> None:
    strategy = ipu.ipu_strategy.IPUStrategy(f"/device:IPU:{ordinal}")
    with strategy.scope():
        variable = tf.Variable(1.0)
    assert variable.device.endswith(f"/task:0/device:IPU:{ordinal}")
    with tf.device(variable.device):
        assert float(tf.Variable(2.0) + variable) == 3.0
    assert tf.Variable(1.0).device.endswith("CPU:0")


def test_losses_may_be_scaled() -> None:
    from tensorflow.python.keras.mixed_precision import loss_scale_optimizer
    from tensorflow.python.keras.optimizer_v2 import gradient_descent

    with make_strategy().scope():
        scaling = loss_scale_optimizer.LossScaleOptimizer(gradient_descent.SGD())
    assert float(scaling.get_scaled_loss(tf.constant(1.0))) > 1


def test_it_is_a_strategy_of_either_version() -> None:
    strategy = ipu.ipu_strategy.IPUStrategy()
    assert isinstance(strategy, tf.distribute.Strategy)
    assert isinstance(strategy, tf.compat.v1.distribute.Strategy)
