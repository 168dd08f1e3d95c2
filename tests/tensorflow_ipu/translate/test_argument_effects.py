"""Every translated argument of pipelines, Keras models, feeds and optimisers does so.

Each is tried twice, left alone and set: a value or a modelled number must differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import _modelling  # noqa: E402

from tensorflow_ipu import _translate  # noqa: E402
from tests.tensorflow_ipu.keras.keras_models import X, Y, dense  # noqa: E402
from tests.tensorflow_ipu.translate.programs import (  # noqa: E402
    Casting,
    Outcome,
    Owner,
    configure,
    infeed,
    momentum,
    outcome,
    piped,
    stages,
)

pytestmark = pytest.mark.usefixtures("own_pod")

v1 = tf.compat.v1
Schedule = ipu.pipelining_ops.PipelineSchedule
StageOptions = ipu.pipelining_ops.PipelineStageOptions
Outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue
SMALL = {"availableMemoryProportion": "0.0001"}

Effect = Callable[[], tuple[object, object]]
"""What is found with an argument left alone, and with it set."""


def of_pipeline(num_ipus: int = 2, common: Any = None, **arguments: Any) -> Effect:
    """Two pipelines, with and without some arguments."""
    shared = common or {}
    return lambda: (
        piped(num_ipus=num_ipus, **shared),
        piped(num_ipus=num_ipus, **shared, **arguments),
    )


def with_two_outputs() -> list[Any]:
    """Stages of which the last one gives the loss and something else."""
    first, last = stages(2)
    return [first, lambda x: (last(x), tf.reduce_max(x))]


def with_input() -> list[Any]:
    first, last = stages(2)
    return [lambda scale, x: first(scale * x), last]


def convolving() -> list[Any]:
    """Stages of a convolution and a lookup."""

    def first(x: Any) -> Any:
        image = tf.reshape(x, [4, 8, 8, 1])
        return tf.nn.conv2d(image, tf.ones([3, 3, 1, 16]), 1, "SAME")

    def last(x: Any) -> Any:
        table = tf.tile(tf.cast(tf.reshape(x, [-1, 8]), tf.float16), [100, 1])
        return tf.reduce_sum(tf.gather(table, tf.range(64)))

    return [first, last]


def of_stage_options(name: str, **options: str) -> Effect:
    """Inference, so that nothing but the stages counts."""
    common = {"optimizer_function": None, "computational_stages": convolving()}
    if name == "matmul_options":
        common["computational_stages"] = stages(2)
    chosen = [StageOptions(**{name: options or SMALL})] * 2
    return of_pipeline(common=common, forward_propagation_stages_poplar_options=chosen)


def of_captured() -> tuple[object, object]:
    def captured(is_summed: bool) -> Any:
        feed = Outfeed()
        with tf.Graph().as_default(), ipu.eager.backprop.GradientCaptureContext() as at:
            configure(None, 2)

            def mark(x: Any) -> Any:
                return ipu.grad_util_ops.capture_upstream_gradients(x, tag="mark")

            def optimizer(loss: Any) -> Any:
                return ipu.pipelining_ops.OptimizerFunctionOutput(
                    v1.train.GradientDescentOptimizer(0.0),
                    loss,
                    gradient_capture_context=at,
                    captured_gradient_outfeed=feed,
                )

            batches, (first, _) = infeed(), stages(2)
            with ipu.scopes.ipu_scope("/device:IPU:0"):
                program = ipu.ipu_compiler.compile(
                    lambda: ipu.pipelining_ops.pipeline(
                        [first, lambda x: tf.reduce_sum(mark(x) ** 2)],
                        4,
                        infeed_queue=batches,
                        outfeed_queue=Outfeed(),
                        optimizer_function=optimizer,
                        gradient_accumulation_for_captured_grads=is_summed,
                    )
                )
            with v1.Session() as session:
                session.run([v1.global_variables_initializer(), batches.initializer])
                session.run(program)
                return np.ravel(session.run(feed.dequeue())["mark"]).tolist()

    return captured(False), captured(True)


def of_outfeed() -> tuple[object, object]:
    with pytest.raises(ValueError, match="has tensor outputs"):
        piped(outfeed_queue=None)
    return "refused", piped(outfeed_queue=Outfeed())


def fitted(
    set_options: Callable[[Any], None], num_ipus: int = 1, pipelined: bool = False
) -> Outcome:
    """What a Keras model of two layers makes of eight steps."""
    configure(None, num_ipus)
    with ipu.ipu_strategy.IPUStrategy().scope():
        layers = [dense(64, input_shape=(3,), name="first"), dense(1, name="last")]
        model = tf.keras.Sequential(layers, name="model")
        if pipelined:
            model.set_pipeline_stage_assignment([0, 1])
        optimizer = tf.keras.optimizers.SGD(1e-3, momentum=0.9)
        model.compile(optimizer, "mse", ["mae"], steps_per_execution=8)
        set_options(model)
        history = model.fit(
            X, Y, 2, verbose=0, shuffle=False, callbacks=[Counting()]
        ).history
        values = [value for _, value in sorted(history.items())]
        counts = [Counting.num_batches]
        return outcome(model, *values, *model.get_weights(), counts)


class Counting(tf.keras.callbacks.Callback):
    """Counts the batches that callbacks hear of."""

    num_batches = 0

    def on_train_begin(self, logs: Any = None) -> None:
        Counting.num_batches = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        Counting.num_batches += 1


def of_accumulation(**options: Any) -> Effect:
    def accumulate(model: Any) -> None:
        model.set_gradient_accumulation_options(4)

    def otherwise(model: Any) -> None:
        given = {"gradient_accumulation_steps_per_replica": 4, **options}
        model.set_gradient_accumulation_options(**given)

    return lambda: (fitted(accumulate), fitted(otherwise))


def of_keras_pipeline(num_ipus: int = 2, **options: Any) -> Effect:
    given = {"gradient_accumulation_steps_per_replica": 4}

    def plain(model: Any) -> None:
        model.set_pipelining_options(**given)

    def otherwise(model: Any) -> None:
        model.set_pipelining_options(**{**given, **options})

    return lambda: (fitted(plain, num_ipus, True), fitted(otherwise, num_ipus, True))


def of_method(name: str, *arguments: Any, num_ipus: int = 1) -> Effect:
    def call(model: Any) -> None:
        getattr(model, name)(*arguments)

    return lambda: (fitted(lambda _: None, num_ipus), fitted(call, num_ipus))


def descent() -> Any:
    return v1.train.GradientDescentOptimizer(1e-6)


def trained(num_ipus: int = 1, opt: Any = Casting, **options: Any) -> Outcome:
    """Twelve batches in a loop, with an accumulating optimiser of TensorFlow 1."""
    given = {"num_mini_batches": 4, **options}
    with tf.Graph().as_default(), v1.Session() as session:
        configure(None, num_ipus)
        batches, first = infeed(), stages(2)[0]

        def body(x: Any) -> Any:
            averaging = ipu.optimizers.CrossReplicaOptimizer(opt())
            kind = ipu.optimizers.GradientAccumulationOptimizerV2
            return kind(averaging, **given).minimize(tf.reduce_sum(first(x) ** 2))

        with ipu.scopes.ipu_scope("/device:IPU:0"):
            loop = ipu.ipu_compiler.compile(
                lambda: ipu.loops.repeat(12, body, infeed_queue=batches)
            )
        session.run([v1.global_variables_initializer(), batches.initializer])
        owner = Owner()
        with _modelling.owned_by(owner):
            session.run(loop)
        return outcome(owner, *session.run(v1.trainable_variables()))


def of_optimizer(num_ipus: int = 1, **options: Any) -> Effect:
    return lambda: (trained(num_ipus), trained(num_ipus, **options))


def ordinal_of(make: Callable[..., Any]) -> Effect:
    return lambda: (make()._device_ordinal, make(device_ordinal=1)._device_ordinal)


def of_dataset() -> tuple[object, object]:
    def ones() -> Any:
        data = tf.data.Dataset.from_tensors(tf.ones([4, 64])).repeat()
        return ipu.ipu_infeed_queue.IPUInfeedQueue(data)

    return piped(), piped(make_infeed=ones)


def of_prefetching() -> tuple[object, object]:
    depths = [infeed(**given)._dataset for given in ({}, {"prefetch_depth": 9})]
    return tuple(int(dataset._buffer_size) for dataset in depths)


def of_outfeed_mode() -> tuple[object, object]:
    last = ipu.ipu_outfeed_queue.IPUOutfeedMode.LAST
    return piped(), piped(outfeed_queue=Outfeed(last))


ON_ONE = {"device_mapping": [0, 0], "pipeline_schedule": Schedule.Sequential}
TWO_OUTPUTS = {"computational_stages": with_two_outputs()}
Method = ipu.gradient_accumulation.GradientAccumulationReductionMethod

EFFECTS: dict[str, Effect] = {
    "pipeline.computational_stages": of_pipeline(
        computational_stages=[stages(1)[0], lambda x: 2 * x]
    ),
    "pipeline.gradient_accumulation_count": of_pipeline(gradient_accumulation_count=4),
    "pipeline.gradient_accumulation_dtype": of_pipeline(
        gradient_accumulation_dtype=tf.float16
    ),
    "pipeline.gradient_accumulation_for_captured_grads": of_captured,
    "pipeline.repeat_count": of_pipeline(repeat_count=2),
    "pipeline.batch_serialization_iterations": of_pipeline(
        num_ipus=1, common=ON_ONE, batch_serialization_iterations=2
    ),
    "pipeline.inputs": lambda: (
        piped(computational_stages=with_input(), inputs=[1.0]),
        piped(computational_stages=with_input(), inputs=[2.0]),
    ),
    "pipeline.infeed_queue": of_dataset,
    "pipeline.outfeed_queue": of_outfeed,
    "pipeline.optimizer_function": lambda: (
        piped(optimizer_function=None),
        piped(optimizer_function=momentum),
    ),
    "pipeline.device_mapping": of_pipeline(num_ipus=4, device_mapping=[0, 3]),
    "pipeline.pipeline_schedule": of_pipeline(pipeline_schedule=Schedule.Interleaved),
    "pipeline.forward_propagation_stages_poplar_options": of_pipeline(
        forward_propagation_stages_poplar_options=[StageOptions(None, SMALL)] * 2
    ),
    "pipeline.backward_propagation_stages_poplar_options": of_pipeline(
        backward_propagation_stages_poplar_options=[StageOptions(None, SMALL)] * 2
    ),
    "pipeline.offload_weight_update_variables": of_pipeline(
        offload_weight_update_variables=True
    ),
    "pipeline.replicated_optimizer_state_sharding": of_pipeline(
        common=ON_ONE, replicated_optimizer_state_sharding=True
    ),
    "pipeline.offload_activations": of_pipeline(offload_activations=True),
    "pipeline.offload_gradient_accumulation_buffers": of_pipeline(
        offload_gradient_accumulation_buffers=True
    ),
    "pipeline.offload_weights": of_pipeline(offload_weights=True),
    "pipeline.outfeed_loss": of_pipeline(common=TWO_OUTPUTS, outfeed_loss=True),
    "pipeline.accumulate_outfeed": of_pipeline(accumulate_outfeed=True),
    "pipeline.accumulate_outfeed_dtype": of_pipeline(
        common={"accumulate_outfeed": True}, accumulate_outfeed_dtype=tf.float16
    ),
    "pipeline.outfeed_mask": of_pipeline(
        common=TWO_OUTPUTS, outfeed_mask=[True, False]
    ),
    "pipeline.reduction_method": of_pipeline(reduction_method=Method.MEAN),
    "pipeline.name": of_pipeline(name="mine"),
    "PipelineStageOptions.convolution_options": of_stage_options("convolution_options"),
    "PipelineStageOptions.matmul_options": of_stage_options("matmul_options"),
    "PipelineStageOptions.slice_options": of_stage_options(
        "slice_options", availableMemoryProportion="0.01"
    ),
    "set_asynchronous_callbacks.asynchronous": of_method(
        "set_asynchronous_callbacks", True
    ),
    "set_replication_options.replicated_metric_reduction_method": of_method(
        "set_replication_options", "SUM", num_ipus=2
    ),
    "set_gradient_accumulation_options.gradient_accumulation_steps_per_replica": (
        of_accumulation(gradient_accumulation_steps_per_replica=8)
    ),
    "set_gradient_accumulation_options.gradient_accumulation_reduction_method": (
        of_accumulation(gradient_accumulation_reduction_method="mean")
    ),
    "set_pipelining_options.gradient_accumulation_steps_per_replica": (
        of_keras_pipeline(gradient_accumulation_steps_per_replica=8)
    ),
    "set_pipelining_options.device_mapping": of_keras_pipeline(
        num_ipus=4, device_mapping=[0, 3]
    ),
    "set_pipelining_options.accumulate_outfeed": of_keras_pipeline(
        accumulate_outfeed=True
    ),
    "set_pipelining_options.gradient_accumulation_reduction_method": of_keras_pipeline(
        gradient_accumulation_reduction_method="mean"
    ),
    "IPUInfeedQueue.dataset": of_dataset,
    "IPUInfeedQueue.device_ordinal": ordinal_of(infeed),
    "IPUInfeedQueue.prefetch_depth": of_prefetching,
    "IPUOutfeedQueue.outfeed_mode": of_outfeed_mode,
    "IPUOutfeedQueue.device_ordinal": ordinal_of(Outfeed),
    "GradientAccumulationOptimizerV2.opt": of_optimizer(opt=descent),
    "GradientAccumulationOptimizerV2.num_mini_batches": of_optimizer(
        num_mini_batches=2
    ),
    "GradientAccumulationOptimizerV2.offload_weight_update_variables": of_optimizer(
        offload_weight_update_variables=True
    ),
    "GradientAccumulationOptimizerV2.replicated_optimizer_state_sharding": of_optimizer(
        num_ipus=2, replicated_optimizer_state_sharding=True
    ),
    "GradientAccumulationOptimizerV2.dtype": of_optimizer(dtype=tf.float16),
    "GradientAccumulationOptimizerV2.reduction_method": of_optimizer(
        reduction_method=Method.MEAN
    ),
}

ELSEWHERE = ("IPUConfig.", "IpuOptions.", "TF_POPLAR_FLAGS.", "poplar_options.")


def test_every_translated_argument_is_tried() -> None:
    listed = {n for n in _translate.TRANSLATED if not n.startswith(ELSEWHERE)}
    assert set(EFFECTS) == listed


@pytest.mark.parametrize("run", [piped, trained, lambda: fitted(lambda _: None)])
def test_nothing_differs_where_nothing_is_set(run: Callable[[], Outcome]) -> None:
    assert run() == run()


@pytest.mark.parametrize("name", EFFECTS)
def test_an_argument_has_an_effect(name: str) -> None:
    without, with_argument = EFFECTS[name]()
    assert without != with_argument


def test_keras_models_accumulate_off_the_chip() -> None:
    found: Any = of_accumulation(offload_weight_update_variables=True)()
    without, offloaded = found
    assert without.values == offloaded.values
    assert without.cycles < offloaded.cycles
