"""Replicas: one trace, several copies of the variables, data dealt in turn."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from popple.engine.tensorflow import (  # noqa: E402
    ReplicatedProgram,
    all_gather,
    all_reduce_sum,
    all_to_all,
    in_turn,
    num_replicas,
    per_replica,
    replica_index,
    tracing,
)


def replicated(function: Any, count: int, *inputs: Any) -> ReplicatedProgram:
    with tracing(count):
        concrete = tf.function(function).get_concrete_function(*inputs)
    return ReplicatedProgram(concrete.inference_fn, concrete.captured_inputs, count)


def values(tensors: list[Any]) -> list[Any]:
    return [tensor.numpy().tolist() for tensor in tensors]


def test_a_program_knows_its_replica_and_their_number() -> None:
    program = replicated(lambda: all_gather(replica_index() + num_replicas()), 3)
    assert values(program.call([])) == [[3, 4, 5]]


def test_outside_a_program_there_is_one_replica() -> None:
    assert num_replicas() == 1
    assert int(replica_index()) == 0
    assert all_reduce_sum(tf.constant(2.0)).numpy() == 2.0


def test_a_sum_reaches_every_replica() -> None:
    def step(x: Any) -> Any:
        mine = x * tf.cast(replica_index() + 1, tf.float32)
        return all_gather(all_reduce_sum(mine))

    x = tf.constant([1.0, 2.0])
    # 1 + 2 + 3 + 4 = 10 times x, the same in all four.
    assert values(replicated(step, 4, x).call([x])) == [[[10.0, 20.0]] * 4]


def test_sums_within_groups_of_neighbours() -> None:
    def step() -> Any:
        return all_gather(all_reduce_sum(replica_index(), group_size=2))

    assert values(replicated(step, 4).call([])) == [[1, 1, 5, 5]]


def test_all_to_all_transposes_senders_and_receivers() -> None:
    def step() -> Any:
        return all_gather(all_to_all(10 * replica_index() + tf.range(2)))

    assert values(replicated(step, 2).call([])) == [[[0, 10], [1, 11]]]


def test_elements_of_one_source_are_dealt_in_turn() -> None:
    source = iter(tf.data.Dataset.range(100))

    def step() -> Any:
        total = tf.zeros([2], tf.int64)
        for _ in tf.range(2):
            (element,) = in_turn(lambda: [next(source)])
            total = tf.concat([total[1:], [element]], 0)
        return all_gather(total)

    # Replica r gets elements r and r + 3 in the first run.
    program = replicated(step, 3)
    assert values(program.call([])) == [[[0, 3], [1, 4], [2, 5]]]
    assert values(program.call([])) == [[[6, 9], [7, 10], [8, 11]]]


def test_replicas_keep_their_own_state_between_runs() -> None:
    counter = tf.Variable(0)
    program = replicated(lambda: all_gather(counter.assign_add(replica_index())), 3)
    program.call([])
    assert values(program.call([])) == [[0, 2, 4]]
    assert counter.numpy() == 0  # the user's variable is that of replica 0


def test_what_the_host_writes_reaches_every_replica() -> None:
    counter = tf.Variable(0)
    program = replicated(lambda: all_gather(counter.assign_add(replica_index())), 2)
    program.call([])
    counter.assign(10)
    assert values(program.call([])) == [[10, 11]]


def test_a_failing_replica_stops_all_and_the_next_run_is_clean() -> None:
    source = tf.Variable(1.0)

    def step(limit: Any) -> Any:
        ordered = tf.debugging.Assert(replica_index() < limit, ["stop"])
        with tf.control_dependencies([ordered]):
            return all_reduce_sum(source.read_value())

    program = replicated(step, 2, tf.constant(2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="stop"):
        program.call([tf.constant(1)])
    assert values(program.call([tf.constant(2)])) == [2.0]


def test_replicas_in_a_session() -> None:
    with tf.Graph().as_default(), tracing(2):
        graph = tf.__internal__.FuncGraph("program")
        with graph.as_default():
            graph.outputs = [all_reduce_sum(tf.constant(3.0))]
        function = _atomic(graph)
        (total,) = ReplicatedProgram(function, graph.external_captures, 2).call([])
        with tf.compat.v1.Session() as session:
            assert session.run(total) == 6.0


def _atomic(graph: Any) -> Any:
    from tensorflow.python.eager.polymorphic_function import atomic_function

    return atomic_function.from_func_graph("program", graph, {})


def test_values_that_differ_are_exchanged_at_the_call() -> None:
    names = [tf.constant([10 * r]) for r in range(3)]
    program = replicated(lambda: all_gather(per_replica(names)[0]), 3)
    assert values(program.call([])) == [[0, 10, 20]]
