"""Models in stages, each on its own IPU, through which batches flow.

The numbers a pipeline computes do not depend on its schedule: for each weight update
`gradient_accumulation_count` batches go through all stages, forward and backward, with
the weights as they were before, and the gradients are accumulated and applied once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.eager import record
from tensorflow.python.ops import while_v2

from popple import marks
from tensorflow_ipu._former_arguments import with_former
from tensorflow_ipu._types import DTypeLike, Infeed, Tensors

from .. import _errors
from .._programs import compilation
from .._programs.marks import marked
from ..gradient_accumulation import GradientAccumulationReductionMethod
from ._pipeline.accumulation import Scale, contribution, scaled, scales
from ._pipeline.optimizer_function import OptimizerFunctionOutput
from ._pipeline.schedules import PipelineSchedule, RecomputationMode, overlap_length
from ._pipeline.settings import ALL_DEVICES, PipelineStageOptions, Settings, settings_of
from ._pipeline.step import Step, Summed
from ._tensors import Tensor, as_list, flat_list

__all__ = [
    "OptimizerFunctionOutput",
    "PipelineSchedule",
    "PipelineStageOptions",
    "RecomputationMode",
    "pipeline",
    "recomputation_checkpoint",
]

_to_flat_list = flat_list
_ALL_DEVICES = ALL_DEVICES

_ONCE: tuple[Scale, Scale] = (None, None)


@with_former(pipeline_depth="gradient_accumulation_count")
def pipeline(
    computational_stages: Sequence[Any],
    gradient_accumulation_count: Any = None,
    gradient_accumulation_dtype: DTypeLike
    | Callable[[tf.Variable], DTypeLike]
    | None = None,
    gradient_accumulation_for_captured_grads: bool = True,
    repeat_count: int = 1,
    batch_serialization_iterations: int = 1,
    inputs: Tensors | None = None,
    infeed_queue: Infeed | None = None,
    outfeed_queue: Any = None,
    optimizer_function: Callable[..., Any] | None = None,
    device_mapping: Any = None,
    pipeline_schedule: PipelineSchedule | None = None,
    recomputation_mode: RecomputationMode | None = None,
    forward_propagation_stages_poplar_options: Any = None,
    backward_propagation_stages_poplar_options: Any = None,
    weight_update_poplar_options: PipelineStageOptions | None = None,
    offload_weight_update_variables: bool | None = None,
    replicated_optimizer_state_sharding: bool | None = False,
    offload_activations: bool | None = None,
    offload_gradient_accumulation_buffers: bool | None = None,
    replicated_weight_sharding: bool | None = None,
    offload_weights: bool | None = None,
    continuous_weight_updates: bool = False,
    outfeed_loss: bool = False,
    accumulate_outfeed: bool = False,
    accumulate_outfeed_dtype: Any = None,
    outfeed_mask: Sequence[Any] | None = None,
    reduction_method: GradientAccumulationReductionMethod
    | str = GradientAccumulationReductionMethod.SUM,
    name: str | None = None,
) -> tf.Operation:
    """Run batches through `computational_stages`; the operation that does it.

    Stage 0 gets `inputs` and an element of `infeed_queue` (a dictionary as keywords),
    every other stage what the one before returned. A stage may be a list of functions
    on a list of devices; they get the same and their outputs are joined.

    With an `optimizer_function` the pipeline trains: it gets the outputs of the last
    stage and returns an `OptimizerFunctionOutput`. Every `gradient_accumulation_count`
    batches (times `batch_serialization_iterations`) the gradients, accumulated by
    `reduction_method` in `gradient_accumulation_dtype`, are applied; this happens
    `repeat_count` times.

    The outputs of the last stage go to `outfeed_queue`: those without a true value in
    `outfeed_mask`, or the loss if `outfeed_loss`; their sum once per update if
    `accumulate_outfeed`. What remains are choices of placing and order, which change
    no value.
    """
    arguments = dict(locals())
    settings = settings_of(arguments)
    inputs = [] if inputs is None else as_list(inputs)
    return _build(settings, [tf.convert_to_tensor(value) for value in inputs])


def _build(settings: Settings, inputs: list[Tensor]) -> tf.Operation:
    """The loops around the traced step."""
    # Before anything is traced, as the number of replicas follows from it.
    compilation.declare_shards(settings.num_ipus)
    step = Step(settings, inputs)
    count = tf.cast(settings.count, tf.int32)
    num_batches = count * settings.batch_serialization_iterations

    def one_update() -> tf.Operation:
        return _one_update(settings, step, num_batches, [count, *inputs])

    # A tape would record the loops, only to find that nobody asks for gradients.
    with (
        record.stop_recording(),
        tf.name_scope(settings.name),
        tf.control_dependencies(_count_check(settings, count)),
    ):
        if settings.repeat_count == 1:
            return one_update()
        return _repeat(settings.repeat_count, one_update)


def _one_update(
    settings: Settings, step: Step, num_batches: Tensor, inputs: list[Tensor]
) -> tf.Operation:
    """All batches of one weight update, and the update; an operation."""
    summed = step.summed

    def one_batch(iteration: Tensor, *state: Tensor) -> list[Tensor]:
        found = step.run([iteration, *inputs])
        old, new = scales(settings.reduction_method, iteration, inputs[0])
        totals = [
            _accumulated(s, total, tensor, (old, new) if s.is_gradient else _ONCE)
            for total, tensor, s in zip(state, found, summed, strict=False)
        ]
        with tf.control_dependencies(found[-1:]):
            return [iteration + 1, *totals, *found[len(summed) : -1]]

    with marked({marks.SCHEDULE: int(settings.schedule)}):
        results: Any = while_v2.while_loop(
            lambda iteration, *_: iteration < num_batches,
            one_batch,
            [tf.constant(0), *step.initial_state()],
            parallel_iterations=1,
        )
    last, *state = results
    with tf.control_dependencies([last]):
        return step.update(state[: len(summed)], state[len(summed) :], inputs)


def _accumulated(
    summed: Summed, total: Tensor, tensor: Tensor, factors: tuple[Scale, Scale]
) -> Tensor:
    """The sum with what one batch adds to it, by the name it has in reports."""
    old, new = factors
    with tf.name_scope("GradientAccumulatorAddWithScale"):
        return scaled(total, old) + contribution(tensor, new, summed.dtype)


def _repeat(times: Any, one_update: Callable[[], Any]) -> tf.Operation:
    """The same so many times, one after the other; an operation."""

    def body(iteration: Tensor) -> list[Tensor]:
        with tf.control_dependencies([one_update()]):
            return [iteration + 1]

    last = while_v2.while_loop(
        lambda iteration: iteration < times,
        body,
        [tf.constant(0)],
        parallel_iterations=1,
    )
    return tf.group(last)


def _count_check(settings: Settings, count: Tensor) -> list[Any]:
    """Operations that fail for a number of batches that the schedule cannot take."""
    mapping = [tuple(flat_list(device)) for device in settings.device_mapping]
    overlap = overlap_length(settings.schedule, mapping, settings.training)
    what = (
        f"The number of iterations of the pipeline must be a multiple of {overlap}, "
        f"the number of batches in it at a time. It is {settings.count}; it is given "
        "as `gradient_accumulation_count`, `gradient_accumulation_steps_per_replica` "
        "or `steps_per_execution`."
    )
    kind = tf.errors.FailedPreconditionError
    if not isinstance(settings.count, int):
        wrong = tf.math.floormod(count, overlap) > 0
        return [_errors.failing_if(wrong, kind, what)]
    if settings.count % overlap or settings.count == 0:
        return [_errors.failing(kind, what)]
    return []


def recomputation_checkpoint(tensors: Tensors, name: str | None = None) -> Tensors:
    """The same tensors, marked to be kept where activations are computed again."""
    with marked({marks.CHECKPOINT: 1}):
        return tf.nest.map_structure(
            lambda tensor: tf.identity(tensor, name=name),
            tensors,
            expand_composites=True,
        )
