"""Operations of programs: loops, replicas, captured gradients, user operations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

from popple.errors import UsageError  # noqa: E402

v1 = tf.compat.v1
DEVICE = "/device:IPU:0"


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield
    ipu.config.reset_ipu_configuration()


def configure(num_ipus: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.configure_ipu_system()


def compiled(function: Any, *inputs: Any) -> Any:
    with ipu.scopes.ipu_scope(DEVICE):
        return ipu.ipu_compiler.compile(function, list(inputs))


def run(fetch: Any) -> Any:
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return session.run(fetch)


def on_replicas(num_replicas: int, function: Any) -> Any:
    """What `function(index)` gives in every replica."""
    configure(num_replicas)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def program() -> Any:
        index = tf.cast(ipu.replication_ops.replication_index(), tf.float32)
        return outfeed.enqueue(function(index))

    program_op = compiled(program)
    with v1.Session() as session:
        session.run(program_op)
        return session.run(outfeed.dequeue())[0].tolist()


def test_sums_and_means_over_groups_of_replicas() -> None:
    ops = ipu.cross_replica_ops
    assert on_replicas(4, ops.cross_replica_sum) == [6.0] * 4
    assert on_replicas(4, lambda i: ops.cross_replica_mean(i, 2)) == [
        0.5, 0.5, 2.5, 2.5,
    ]  # fmt: skip


def test_pieces_between_replicas() -> None:
    to_all = ipu.all_to_all_op.all_to_all
    assert on_replicas(2, lambda i: to_all(tf.stack([i, i + 10]), 0, 0, 2)) == [
        [0.0, 1.0],
        [10.0, 11.0],
    ]
    gather = ipu.all_to_all_op.all_gather
    assert on_replicas(2, lambda i: gather(i, 2)) == [[0.0, 1.0]] * 2


def test_a_reduced_vector_is_scattered_with_padding() -> None:
    scatter = ipu.reduce_scatter_op.reduce_scatter
    found = on_replicas(2, lambda i: scatter(tf.stack([i, 1.0, 5 * i]), 2))
    # The sums are [0 + 1, 1 + 1, 0 + 5] and a zero.
    assert found == [[1.0, 2.0], [5.0, 0.0]]


def test_a_sum_over_replicas_has_a_gradient() -> None:
    def gradient(index: Any) -> Any:
        total = ipu.cross_replica_ops.cross_replica_sum(index)
        return tf.gradients(total * (index + 1), index)[0]

    # d/di of (0 + 1)(i + 1): the sum itself, and (i + 1) added up over the replicas.
    assert on_replicas(2, gradient) == [1 + 3.0, 1 + 3.0]


def test_groups_must_divide_the_replicas() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not evenly divide"):
        on_replicas(4, lambda i: ipu.cross_replica_ops.cross_replica_sum(i, 3))


def test_one_replica_is_equal_to_itself() -> None:
    pair = ipu.cross_replica_ops.assume_equal_across_replicas({"a": tf.constant(2)})
    assert run(pair) == {"a": 2}


def test_a_queue_gives_what_came_before() -> None:
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(x: Any) -> Any:
        before = ipu.internal_ops.fifo(x, 2)
        counter = ipu.internal_ops.get_current_iteration_counter()
        return x + 1, outfeed.enqueue((before, counter))

    loop = compiled(lambda: ipu.loops.repeat(5, body, [10.0]))
    with v1.Session() as session:
        for _ in range(2):  # a second run starts from zeros again
            session.run(loop)
            before, counter = session.run(outfeed.dequeue())
            assert before.tolist() == [0, 0, 10, 11, 12]
            assert counter.tolist() == [0, 1, 2, 3, 4]


def test_outside_of_loops_nothing_came_before() -> None:
    assert run(ipu.internal_ops.fifo(tf.constant(3.0), 1)) == 0.0
    assert run(ipu.internal_ops.fifo(tf.constant(3.0), 0)) == 3.0
    assert run(ipu.internal_ops.get_current_iteration_counter()) == 0


def test_tensors_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    run(ipu.internal_ops.print_tensor(tf.constant([1, 2]), name="pair"))
    assert "pair: [1 2]" in capfd.readouterr().err


def test_remaps_change_no_value() -> None:
    x = tf.constant(2.0)
    assert run([ipu.internal_ops.remap(x), ipu.internal_ops.remap_deduce(x)]) == [2, 2]


def test_shards_out_of_order_fail_when_they_run() -> None:
    def gather() -> Any:
        with ipu.scopes.ipu_shard(1):
            first = tf.identity([1.0])
        with ipu.scopes.ipu_shard(0):
            second = tf.identity([2.0])
        return ipu.within_replica_ops.all_gather([first, second])

    configure(2)
    gathered = compiled(gather)
    with pytest.raises(tf.errors.FailedPreconditionError, match="order of the shards"):
        run(gathered)


def test_expressions_are_computed() -> None:
    edsl = ipu.vertex_edsl

    def expression(x: Any, y: Any) -> Any:
        square = edsl.let(x, lambda v: v * v)
        larger = edsl.BinaryFunctionExpr("std::max", square, y)
        return edsl.condition(edsl.BinaryExpr("<", x, y), -larger, abs(x) + 1)

    x, y = tf.constant([1.0, -3.0, 4.0]), tf.constant([2.0, 2.0, 0.0])
    found = run(ipu.custom_ops.codelet_expression_op(expression, x, y))
    assert found.tolist() == [-2.0, -9.0, 5.0]


def test_expressions_have_the_text_of_a_codelet() -> None:
    edsl = ipu.vertex_edsl
    x = edsl.PlaceholderVertexExpr("in0", edsl.Float32())
    names = edsl.DefaultNameSource()
    assert (abs(x) + 2).lower(names) == "((std::abs(in0) )+(2))"
    assert edsl.let(x, lambda v: v * v).lower(names) == (
        "[&, var0=in0]{return (var0*var0);}()"
    )
    assert str(-x) == "(0-in0)"


def test_a_compiled_operation_names_the_python_hook() -> None:
    with pytest.raises(UsageError, match=r"register_python_op\('Build', function"):
        ipu.custom_ops.precompiled_user_op([tf.constant(1.0)], "lib/unknown.so")


def test_python_stands_in_for_a_compiled_operation() -> None:
    def scale(inputs: list[Any], attributes: str | None) -> list[Any]:
        return [inputs[0] * float(attributes or 1), inputs[1]]

    def gradient(
        gradients: Any, outputs: Any, inputs: Any, attributes: str | None
    ) -> list[Any]:
        return [gradients[0] * float(attributes or 1), gradients[1]]

    ipu.custom_ops.register_python_op("Scale", scale, gradient, "build/libscale.so")
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    scaled, kept = ipu.custom_ops.cpu_user_operation(
        [x, y],
        "elsewhere/libscale.so",
        outs={"output_types": [tf.float32] * 2, "output_shapes": [[2], [2]]},
        op_name="Scale",
        inputs_with_gradients=[0],
        attributes="3",
        gradient_attributes="5",
    )
    assert run(scaled).tolist() == [3.0, 6.0]
    assert run(tf.gradients(scaled + kept, x)[0]).tolist() == [5.0, 5.0]
    assert tf.gradients(scaled + kept, y) == [None]


def test_outputs_of_another_number_are_refused() -> None:
    ipu.custom_ops.register_python_op("Pair", lambda inputs, _: inputs * 2)
    with pytest.raises(UsageError, match="returned 2 tensors, and `outs` declares 0"):
        ipu.custom_ops.precompiled_user_op([tf.constant(1.0)], "a.so", op_name="Pair")


def test_gradients_are_captured_on_their_way() -> None:
    x = tf.constant(3.0)
    with ipu.eager.backprop.GradientCaptureContext() as context:
        y = ipu.grad_util_ops.capture_upstream_gradients(x * x, tag="square")
        (gradient,) = tf.gradients(5 * y, x)
    (captured,) = context.captured_gradients["square"]
    assert run([captured, gradient]) == [5.0, 30.0]
    with pytest.raises(ValueError, match="read only"):
        context.captured_gradients = {}


def test_a_tape_captures_after_its_block() -> None:
    x = tf.constant(3.0)
    with ipu.eager.backprop.GradientCaptureTape() as tape:
        tape.watch(x)
        pair = ipu.grad_util_ops.capture_upstream_gradients([x, 2 * x], tag="pair")
        y = pair[0] * pair[1]
    gradient = tape.gradient(y, x)
    assert run([tape.captured_gradients["pair"], gradient]) == [[6.0, 3.0], 12.0]


def test_capturing_needs_a_context() -> None:
    x = tf.constant(3.0)
    y = ipu.grad_util_ops.capture_upstream_gradients(x)
    with pytest.raises(RuntimeError, match="may only be used within the context of"):
        tf.gradients(y, x)


@pytest.mark.parametrize("factor", [1, 2])
def test_a_table_on_the_host_is_trained(factor: int) -> None:
    spec = ipu.embedding_ops.HostEmbeddingSGDGAOptimizerSpec(0.5, factor)
    table = ipu.embedding_ops.create_host_embedding(
        "table", [3, 2], tf.float32, optimizer_spec=spec, initializer=tf.ones([3, 2])
    )

    def body() -> Any:
        loss = tf.reduce_sum(table.lookup(tf.constant([[1, 7]])))
        return v1.train.GradientDescentOptimizer(1.0).minimize(loss)

    train = compiled(lambda: ipu.loops.repeat(3, body))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        with table.register(session):
            session.run(train)
        rows = session.run(table.get_embedding_tensor())
    # 7 reads row 2. Three batches of -0.5; with factor 2 the third still waits.
    expected = 1 - 0.5 * (3 if factor == 1 else 2)
    assert rows.tolist() == [[1, 1], [expected] * 2, [expected] * 2]


def test_tables_on_the_host_are_checked() -> None:
    with pytest.raises(ValueError, match="Unknown partition strategy"):
        ipu.embedding_ops.create_host_embedding("t", [1, 1], tf.float32, "ROWS")
    table = ipu.embedding_ops.create_host_embedding("t", [1, 1], tf.float32)
    with pytest.raises(ValueError, match="requires a session"):
        table.register()
    with pytest.raises(NotImplementedError, match="register"):
        table()


def test_a_data_set_is_measured() -> None:
    data = tf.data.Dataset.from_tensors(np.zeros([4], np.float32)).repeat()
    queue = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    (text,) = run(ipu.dataset_benchmark.infeed_benchmark(queue, 2, 5, False))
    first, second = json.loads(text)["epochs"]
    assert first["total_bytes_processed"] == second["total_bytes_processed"] == 80
    assert first["time_elapsed"] > 0


def test_measuring_refuses_nothing_and_emptiness() -> None:
    empty = tf.data.Dataset.from_tensors(np.zeros([0]))
    with pytest.raises(ValueError, match="`number_of_epochs` to be at least 1"):
        ipu.dataset_benchmark.dataset_benchmark(empty, 0, 1)
    with pytest.raises(TypeError, match=r"tf\.data\.Dataset"):
        ipu.dataset_benchmark.dataset_benchmark([1], 1, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="dimension of size 0"):
        run(ipu.dataset_benchmark.dataset_benchmark(empty, 1, 1))
