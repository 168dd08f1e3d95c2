"""Pipelines: numbers against a loop in Python, feeds, checks, marks of stages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

v1 = tf.compat.v1
DEVICE = "/device:IPU:0"
pipelining = ipu.pipelining_ops
Schedule = pipelining.PipelineSchedule
Method = ipu.gradient_accumulation.GradientAccumulationReductionMethod


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
    data = tf.data.Dataset.range(count).map(lambda x: tf.cast(x, tf.float32))
    return ipu.ipu_infeed_queue.IPUInfeedQueue(data)


def multiply(name: str) -> Any:
    """A stage that multiplies by a variable which starts at 2."""

    def stage(x: Any) -> Any:
        return x * v1.get_variable(name, initializer=2.0, use_resource=True)

    return stage


def descend(loss: Any) -> Any:
    optimizer = v1.train.GradientDescentOptimizer(0.01)
    return pipelining.OptimizerFunctionOutput(optimizer, loss)


def built(stages: Any, *args: Any, **kwargs: Any) -> Any:
    def program() -> Any:
        return pipelining.pipeline(stages, *args, **kwargs)

    with ipu.scopes.ipu_scope(DEVICE):
        return ipu.ipu_compiler.compile(program)


def run(
    stages: Any, *args: Any, infeed: Any = None, num_ipus: int = 2, **kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """What a pipeline fed out, and the variables after it."""
    configure(num_ipus)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    feeds = {"infeed_queue": infeed, "outfeed_queue": outfeed}
    program = built(stages, *args, **feeds, **kwargs)
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        if infeed is not None:
            session.run(infeed.initializer)
        session.run(program)
        variables = {v.op.name: session.run(v) for v in v1.trainable_variables()}
        return session.run(dequeued), variables


def by_hand(count: int, repeats: int, method: Any) -> tuple[list[float], list[float]]:
    """Losses and weights of x * a * b, trained by descent on 0, 1, 2, .."""
    a = b = 2.0
    losses, x = [], 0
    for _ in range(repeats):
        gradient_a = gradient_b = 0.0
        for _ in range(count):
            losses.append(x * a * b)
            gradient_a, gradient_b = gradient_a + x * b, gradient_b + x * a
            x += 1
        share = 1 if method is Method.SUM else count
        a, b = a - 0.01 * gradient_a / share, b - 0.01 * gradient_b / share
    return losses, [a, b]


@pytest.mark.parametrize("schedule", list(Schedule))
@pytest.mark.parametrize("method", list(Method))
def test_training_is_what_it_is_by_hand(schedule: Any, method: Any) -> None:
    losses, variables = run(
        [multiply("a"), multiply("b"), lambda x: x, lambda x: x],
        8,
        num_ipus=4,
        repeat_count=2,
        infeed=numbers(),
        optimizer_function=descend,
        pipeline_schedule=schedule,
        reduction_method=method,
    )
    expected, weights = by_hand(8, 2, method)
    assert np.allclose(losses[0], expected, rtol=1e-5)
    assert np.allclose([variables["a"], variables["b"]], weights, rtol=1e-5)


def test_serialised_batches_belong_to_one_update() -> None:
    losses, variables = run(
        [multiply("a"), multiply("b")],
        2,
        num_ipus=1,
        batch_serialization_iterations=3,
        infeed=numbers(),
        optimizer_function=descend,
    )
    expected, weights = by_hand(6, 1, Method.SUM)
    assert np.allclose(losses[0], expected)
    assert np.allclose([variables["a"], variables["b"]], weights)


def test_a_learning_rate_may_travel_through_the_stages() -> None:
    def optimizer(rate: Any, loss: Any) -> Any:
        momentum = v1.train.MomentumOptimizer(rate, 0.9)
        return pipelining.OptimizerFunctionOutput(momentum, loss)

    scale = multiply("a")
    _, variables = run(
        [lambda rate, x: (rate, scale(x)), lambda rate, x: (rate, x)],
        4,
        inputs=[0.5],
        infeed=numbers(),
        optimizer_function=optimizer,
        outfeed_mask=[True, False],
    )
    assert variables["a"] == 2 - 0.5 * (0 + 1 + 2 + 3)


def test_a_keras_optimizer_takes_its_variables_from_a_tape() -> None:
    from tensorflow.python.keras.optimizer_v2 import gradient_descent

    with tf.GradientTape() as tape:

        def optimizer(loss: Any) -> Any:
            sgd = gradient_descent.SGD(0.01)
            return pipelining.OptimizerFunctionOutput(sgd, loss, tape=tape)

        _, variables = run(
            [multiply("a"), multiply("b")],
            4,
            infeed=numbers(),
            optimizer_function=optimizer,
        )
    assert np.allclose([variables["a"], variables["b"]], by_hand(4, 1, Method.SUM)[1])


def test_replicas_train_on_elements_in_turn() -> None:
    def optimizer(loss: Any) -> Any:
        descent = v1.train.GradientDescentOptimizer(0.01)
        averaging = ipu.cross_replica_optimizer.CrossReplicaOptimizer(descent)
        return pipelining.OptimizerFunctionOutput(averaging, loss)

    losses, variables = run(
        [multiply("a"), lambda x: x],
        4,
        infeed=numbers(),
        optimizer_function=optimizer,
        num_ipus=4,
    )
    # Four IPUs hold two replicas: 0, 2, 4, 6 and 1, 3, 5, 7 give 12 and 16.
    assert losses[0].tolist() == [[0, 2], [4, 6], [8, 10], [12, 14]]
    assert np.allclose(variables["a"], 2 - 0.01 * (12 + 16) / 2)


def test_sums_have_the_type_asked_for() -> None:
    seen = []

    class Casting(v1.train.GradientDescentOptimizer):
        def apply_gradients(self, pairs: Any, *args: Any, **kwargs: Any) -> Any:
            seen.extend(gradient.dtype for gradient, _ in pairs)
            cast = [(tf.cast(g, v.dtype.base_dtype), v) for g, v in pairs]
            return super().apply_gradients(cast, *args, **kwargs)

    def stage(x: Any) -> Any:
        weight = v1.get_variable("w", [], tf.float16, v1.ones_initializer())
        return tf.cast(x, tf.float16) * weight

    _, variables = run(
        [stage, lambda x: x],
        4,
        gradient_accumulation_dtype=lambda variable: tf.float32,
        infeed=numbers(),
        optimizer_function=lambda loss: pipelining.OptimizerFunctionOutput(
            Casting(0.5), loss
        ),
    )
    assert seen == [tf.float32]
    assert variables["w"] == 1 - 0.5 * 6


def test_inference_feeds_out_structures() -> None:
    outputs, _ = run(
        [lambda x: (x, x + 1), lambda x, y: {"sum": x + y}],
        2,
        infeed=numbers(),
    )
    assert outputs["sum"].tolist() == [1.0, 3.0]


def test_elements_with_names_are_keywords() -> None:
    data = tf.data.Dataset.range(4).map(lambda x: {"a": tf.cast(x, tf.int32)})
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    outputs, _ = run([lambda c, a: a * c, lambda x: x], 2, inputs=[10], infeed=infeed)
    assert outputs.tolist() == [0, 10]


def test_outputs_are_summed_once_per_update() -> None:
    outputs, _ = run(
        [lambda x: x, lambda x: (x, -x)],
        4,
        repeat_count=2,
        infeed=numbers(),
        accumulate_outfeed=True,
        accumulate_outfeed_dtype=tf.float16,
    )
    assert [o.tolist() for o in outputs] == [[6, 22], [-6, -22]]
    assert outputs[0].dtype == np.float16


@pytest.mark.parametrize(
    ("accumulate", "expected"), [(False, [0, 2, 4, 6]), (True, [12])]
)
def test_the_loss_alone_can_be_fed_out(accumulate: bool, expected: list[int]) -> None:
    losses, _ = run(
        [multiply("a"), lambda x: (x, x)],
        4,
        infeed=numbers(),
        optimizer_function=lambda x, _: descend(x),
        outfeed_loss=True,
        accumulate_outfeed=accumulate,
    )
    assert losses.tolist() == expected


def test_functions_side_by_side_get_the_same_inputs() -> None:
    outputs, _ = run(
        [lambda x: x + 1, [lambda x: 2 * x, lambda x: (x, -x)]],
        2,
        infeed=numbers(),
        device_mapping=[0, [2, 3]],
        num_ipus=4,
    )
    assert [o.tolist() for o in outputs] == [[2, 4], [1, 2], [-1, -2]]


def test_captured_gradients_are_summed_and_fed_out() -> None:
    feed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with ipu.eager.backprop.GradientCaptureContext() as context:

        def mark(x: Any) -> Any:
            return ipu.grad_util_ops.capture_upstream_gradients(x, tag="mark")

        def optimizer(loss: Any) -> Any:
            return pipelining.OptimizerFunctionOutput(
                v1.train.GradientDescentOptimizer(0.0),
                loss,
                gradient_capture_context=context,
                captured_gradient_outfeed=feed,
            )

        configure(2)
        scale, infeed = multiply("a"), numbers()
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        program = built(
            [scale, lambda x: tf.square(mark(x))],
            4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer,
        )
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
        captured = session.run(feed.dequeue())
    # The gradient of y^2 is 2y, with y = 2x for x = 0, 1, 2, 3.
    assert captured["mark"][0].tolist() == [24.0]


def test_the_counter_counts_batches_of_an_update() -> None:
    outputs, _ = run(
        [lambda: ipu.internal_ops.get_current_iteration_counter(), lambda i: i],
        2,
        repeat_count=2,
    )
    assert outputs.tolist() == [0, 1, 0, 1]


def test_stages_are_marked_on_their_operations() -> None:
    found = {}

    def stage(name: str) -> Any:
        def inner(x: Any) -> Any:
            found[name] = tf.identity(x).op
            return found[name].outputs[0]

        return inner

    stages = [stage("first"), stage("second")]
    options = [pipelining.PipelineStageOptions(matmul_options={"a": "b"})] * 2
    run(
        stages,
        2,
        infeed=numbers(),
        device_mapping=[1, 0],
        forward_propagation_stages_poplar_options=options,
    )
    marked = json.loads(found["first"].get_attr("_ipu_stage_options"))
    assert marked["forward"][1]["matmul_options"] == {"a": "b"}
    assert [found[n].get_attr("_ipu_stage") for n in ("first", "second")] == [0, 1]
    assert ipu.sharding.get_sharding(found["first"]) == [1]


def test_checkpoints_change_no_value() -> None:
    kept = pipelining.recomputation_checkpoint([tf.constant(1), tf.constant(2)])
    with v1.Session() as session:
        assert session.run(kept) == [1, 2]
    assert kept[0].op.get_attr("_ipu_recomputation_checkpoint") == 1


@pytest.mark.parametrize(
    ("schedule", "training", "count", "multiple"),
    [
        (Schedule.Grouped, False, 4, 3),
        (Schedule.Grouped, True, 9, 6),
        (Schedule.Interleaved, True, 8, 3),
    ],
)
def test_the_schedule_says_what_divides_the_count(
    schedule: Any, training: bool, count: int, multiple: int
) -> None:
    extra = {"optimizer_function": descend} if training else {}
    stages = [multiply("a"), lambda x: x, lambda x: x]
    with pytest.raises(
        tf.errors.FailedPreconditionError, match=f"must be a multiple of {multiple}"
    ):
        run(
            stages,
            count,
            num_ipus=4,
            infeed=numbers(),
            pipeline_schedule=schedule,
            **extra,
        )


def test_a_count_known_only_when_it_runs() -> None:
    count = v1.placeholder_with_default(4, [])
    outputs, _ = run([lambda: 1, lambda x: x], count)
    assert outputs.tolist() == [1] * 4
    wrong = v1.placeholder_with_default(3, [])
    with pytest.raises(tf.errors.FailedPreconditionError, match="multiple of 2"):
        run([lambda: 1, lambda x: x], wrong)


def one(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"gradient_accumulation_count": None}, ValueError, "must be specified"),
        ({"gradient_accumulation_count": -1}, ValueError, ">= 0"),
        ({"continuous_weight_updates": True}, NotImplementedError, "not supported"),
        ({"pipeline_schedule": 0}, TypeError, "PipelineSchedule"),
        ({"recomputation_mode": 0}, TypeError, "RecomputationMode"),
        ({"computational_stages": one}, TypeError, "list or a tuple"),
        ({"computational_stages": [one]}, ValueError, "at least two"),
        ({"infeed_queue": 1}, TypeError, "infeed_queue is not"),
        ({"outfeed_queue": 1}, TypeError, "outfeed_queue is not"),
        (
            {"device_mapping": 1},
            TypeError,
            "device_mapping argument needs to be a list",
        ),
        ({"device_mapping": [1]}, ValueError, "1 entries for 2 stages"),
        ({"outfeed_mask": [True]}, ValueError, "optimizer_function must be provided"),
        ({"outfeed_loss": True}, ValueError, "optimizer_function must be provided"),
        ({"accumulate_outfeed": True}, ValueError, "outfeed_queue must be provided"),
        (
            {"batch_serialization_iterations": 2, "device_mapping": [0, 1]},
            NotImplementedError,
            "single IPU",
        ),
        (
            {
                "batch_serialization_iterations": 2,
                "pipeline_schedule": Schedule.Grouped,
            },
            NotImplementedError,
            "`Sequential` schedule",
        ),
        (
            {"forward_propagation_stages_poplar_options": [1]},
            ValueError,
            "of length 2",
        ),
        ({"weight_update_poplar_options": 1}, TypeError, "PipelineStageOptions"),
        ({}, ValueError, "has tensor outputs"),
    ],
)
def test_refused(arguments: dict[str, Any], error: Any, message: str) -> None:
    usual = {
        "computational_stages": [one, one],
        "gradient_accumulation_count": 4,
        "inputs": [1.0],
    }
    with pytest.raises(error, match=message):
        pipelining.pipeline(**{**usual, **arguments})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"reduction_method": "median"}, ValueError, "Cannot parse median"),
        (
            {"reduction_method": "mean", "batch_serialization_iterations": 2},
            ValueError,
            "only supported when reduction_method",
        ),
        (
            {"pipeline_schedule": Schedule.Interleaved, "device_mapping": [0, 0]},
            NotImplementedError,
            "same device",
        ),
        (
            {
                "replicated_optimizer_state_sharding": True,
                "offload_weight_update_variables": False,
            },
            ValueError,
            "optimizer state must be offloaded",
        ),
        ({"outfeed_mask": [1], "outfeed_loss": True}, ValueError, "exclude each other"),
    ],
)
def test_refused_for_training(
    arguments: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        pipelining.pipeline(
            [one, one], 4, inputs=[1.0], optimizer_function=descend, **arguments
        )


def test_tensors_from_outside_must_be_inputs() -> None:
    outside = v1.placeholder_with_default(1.0, [])
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with pytest.raises(ValueError, match="Trying to capture the tensor"):
        pipelining.pipeline(
            [lambda x: x + outside, one], 4, inputs=[1.0], outfeed_queue=outfeed
        )


def test_what_an_optimizer_function_returns_is_checked() -> None:
    optimizer = v1.train.GradientDescentOptimizer(1.0)
    loss = tf.constant(1.0)
    output = pipelining.OptimizerFunctionOutput
    with pytest.raises(TypeError, match="opt must be a TensorFlow Optimizer"):
        output("sgd", loss)
    with pytest.raises(TypeError, match="loss must be a TensorFlow Tensor"):
        output(optimizer, 1.0)
    with pytest.raises(TypeError, match="apply_gradients_args must be a tuple"):
        output(optimizer, loss, apply_gradients_args=[1])
    with pytest.raises(ValueError, match="variables may only be used with OptimizerV2"):
        output(optimizer, loss, variables=[1])
    queue = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with pytest.raises(ValueError, match="needs something that captures"):
        output(optimizer, loss, captured_gradient_outfeed=queue)


def test_options_of_a_stage_are_kept() -> None:
    options = pipelining.PipelineStageOptions(
        convolution_options={"partialsType": "half"}
    )
    (flag,) = options.get_proto().convolution_options
    assert (flag.option, flag.value) == ("partialsType", "half")
    with pytest.raises(TypeError, match="matmul_options must be dictionary"):
        pipelining.PipelineStageOptions(matmul_options=["a"])
