"""Programs of TensorFlow 1: compile, loops and feeds in a graph and a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.framework import function as tf_function  # noqa: E402

v1 = tf.compat.v1
DEVICE = "/device:IPU:0"


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph
    ipu.config.reset_ipu_configuration()


def configure(num_ipus: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.configure_ipu_system()


def numbers(count: int = 100) -> Any:
    return tf.data.Dataset.range(count).map(lambda x: tf.cast(x, tf.float32))


def compiled(function: Any, *inputs: Any) -> Any:
    with ipu.scopes.ipu_scope(DEVICE):
        return ipu.ipu_compiler.compile(function, list(inputs))


def test_a_single_tensor_comes_in_a_list() -> None:
    doubled = compiled(lambda x: 2 * x, np.float32(4))
    with v1.Session() as session:
        assert session.run(doubled) == [8.0]


def test_structures_and_operations() -> None:
    counter = v1.get_variable("counter", initializer=0, use_resource=True)
    nested = compiled(lambda: {"a": tf.constant(1), "b": (tf.constant(2),)})
    increment = compiled(lambda: counter.assign_add(5).op)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(nested) == {"a": 1, "b": (2,)}
        session.run(increment)
        assert session.run(counter) == 5


def test_a_program_on_no_ipu_is_refused() -> None:
    with pytest.raises(Exception, match="not placed on an IPU"):
        ipu.ipu_compiler.compile(lambda: tf.constant(1) + 1)


def test_repeat_reads_an_infeed_and_fills_an_outfeed() -> None:
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(numbers())
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(total: Any, x: Any) -> Any:
        return total + x, outfeed.enqueue({"x": x})

    total = compiled(lambda: ipu.loops.repeat(4, body, [0.0], infeed))
    seen = outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        assert session.run(total) == [0.0 + 1 + 2 + 3]
        assert session.run(seen)["x"].tolist() == [0, 1, 2, 3]
        assert session.run(total) == [4.0 + 5 + 6 + 7]  # the infeed goes on


def test_a_dictionary_becomes_keywords() -> None:
    pairs = numbers().map(lambda x: {"left": x, "right": -x})
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(pairs)

    def body(total: Any, left: Any, right: Any) -> Any:
        return total + left - right

    total = compiled(lambda: ipu.loops.repeat(3, body, [0.0], infeed))
    with v1.Session() as session:
        session.run(infeed.initializer)
        assert session.run(total) == [2 * (0.0 + 1 + 2)]


def test_while_loop_stops_at_its_condition() -> None:
    def net() -> Any:
        return ipu.loops.while_loop(lambda x: x < 20, lambda x: x * 3, [1])

    with v1.Session() as session:
        assert session.run(compiled(net)) == [27]


def test_a_body_that_changes_a_type_is_refused() -> None:
    def net() -> Any:
        return ipu.loops.repeat(2, lambda x: tf.cast(x, tf.int32), [1.0])

    with pytest.raises(TypeError, match="Mismatch between input types"):
        compiled(net)


def test_a_body_with_too_few_arguments_is_refused() -> None:
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(numbers())
    with pytest.raises(TypeError, match="needs exactly 1 argument"):
        compiled(lambda: ipu.loops.repeat(2, lambda x: x, [1.0], infeed))


def test_the_last_value_of_an_outfeed() -> None:
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue(
        ipu.ipu_outfeed_queue.IPUOutfeedMode.LAST
    )
    run = compiled(
        lambda: ipu.loops.repeat(3, lambda x: (x + 1, outfeed.enqueue(x)), [5])
    )
    last = outfeed.dequeue()
    with v1.Session() as session:
        with pytest.raises(
            tf.errors.FailedPreconditionError, match="Trying to get the last value"
        ):
            session.run(last)
        session.run(run)
        assert session.run(last) == 7


def test_replicas_share_the_data_and_a_sum() -> None:
    configure(2)
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(numbers())
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(x: Any) -> Any:
        total = ipu.cross_replica_ops.cross_replica_sum(x)
        return outfeed.enqueue((x, total))

    run = compiled(lambda: ipu.loops.repeat(2, body, infeed_queue=infeed))
    seen = outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(run)
        x, total = session.run(seen)
    assert x.tolist() == [[0, 1], [2, 3]]
    assert total.tolist() == [[1, 1], [5, 5]]


def test_a_graph_built_before_configuration_follows_the_device() -> None:
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def net() -> Any:
        bias = v1.get_variable("bias", initializer=10.0)
        index = tf.cast(ipu.replication_ops.replication_index(), tf.float32)
        return index + bias, outfeed.enqueue(index)

    result = compiled(net)
    seen = outfeed.dequeue()
    configure(4)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(result) == [10.0]  # of replica 0
        assert session.run(seen).tolist() == [[0, 1, 2, 3]]
    assert len(v1.global_variables()) == 1


def test_sharded_programs_have_fewer_replicas() -> None:
    configure(4)

    def net(x: Any) -> Any:
        with ipu.scopes.ipu_shard(0):
            y = x + 1
        with ipu.scopes.ipu_shard(1):
            return ipu.cross_replica_ops.cross_replica_sum(y)

    with v1.Session() as session:
        assert session.run(compiled(net, np.float32(1))) == [2 * 2.0]


@pytest.mark.parametrize(
    ("dataset", "error", "phrase"),
    [
        (lambda: numbers().batch(3), ValueError, "drop_remainder=True"),
        (lambda: numbers(), None, ""),
    ],
)
def test_infeeds_need_static_shapes(dataset: Any, error: Any, phrase: str) -> None:
    if error is None:
        ipu.ipu_infeed_queue.IPUInfeedQueue(dataset())
        return
    with pytest.raises(error, match=phrase):
        ipu.ipu_infeed_queue.IPUInfeedQueue(dataset())


def test_infeeds_refuse_what_the_device_cannot_stream() -> None:
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(4))
    with pytest.raises(tf.errors.FailedPreconditionError, match="datatype int64"):
        _ = infeed.initializer


def test_an_outfeed_is_enqueued_once() -> None:
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def net() -> Any:
        outfeed.enqueue(tf.constant(1))
        return outfeed.enqueue(tf.constant(2))

    with pytest.raises(ValueError, match="only be enqueued once"):
        compiled(net)


def test_gradients_stay_on_the_ipu_of_their_operation(graph: Any) -> None:
    x = v1.placeholder(tf.float32, [2, 2])
    with ipu.scopes.ipu_shard(3):
        y = tf.matmul(x, x)
    (gradient,) = v1.gradients(y, x)
    kinds = [op for op in graph.get_operations() if op.type == "MatMul"]
    assert len(kinds) == 3
    assert gradient is not None
    assert [ipu.sharding.get_sharding(op) for op in kinds] == [[3], [3], [3]]


def test_outside_compilation_is_for_programs() -> None:
    with (
        pytest.raises(ValueError, match="only allowed in XLA context"),
        ipu.scopes.outside_compilation_scope(),
    ):
        pass


def test_a_failed_assertion_leaves_variables_as_they_were() -> None:
    def net(x: Any) -> Any:
        counter = v1.get_variable("counter", initializer=1.0)
        counted = counter.assign_add(1.0)
        with tf.control_dependencies([counted]):
            checked = v1.Assert(x > 0.0, [x])
        with tf.control_dependencies([checked]):
            return x + counted

    x = v1.placeholder(tf.float32, [])
    result = compiled(net, x)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        with pytest.raises(tf.errors.InternalError, match="assertion failed"):
            session.run(result, {x: -1.0})
        assert session.run(result, {x: 1.0}) == [1.0 + 2.0]


def test_assertions_in_a_final_graph_cost_it_nothing_more() -> None:
    x = v1.placeholder(tf.float32, [])

    def net(x: Any) -> Any:
        with tf.control_dependencies([v1.Assert(x > 0.0, [x])]):
            return v1.get_variable("w", initializer=2.0) * x

    result = compiled(net, x)
    with v1.train.MonitoredSession() as session:
        assert session.run(result, {x: 1.0}) == [2.0]
        num_operations = len(result[0].graph.get_operations())
        with pytest.raises(tf.errors.InternalError, match="assertion failed"):
            session.run(result, {x: -1.0})
        assert len(result[0].graph.get_operations()) == num_operations
        assert result[0].graph.finalized


def test_functions_of_tensorflow_1_are_called_in_programs() -> None:
    @tf_function.Defun(tf.float32)
    def doubled(x: Any) -> Any:
        return 2.0 * x

    result = compiled(lambda x: doubled(x), tf.constant(3.0))
    with v1.Session() as session:
        assert session.run(result) == [6.0]


def test_a_variable_that_is_returned_is_what_it_was_before() -> None:
    def net() -> Any:
        weight = v1.get_variable("w", initializer=3.0)
        with tf.control_dependencies([weight * 2.0]):
            update = weight.assign_add(1.0)
        return weight, update.op

    result = compiled(net)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert [session.run(result) for _ in range(3)] == [[3.0], [4.0], [5.0]]
