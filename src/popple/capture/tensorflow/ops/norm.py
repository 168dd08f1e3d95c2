"""Batch normalisation, fused as TensorFlow has it, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.images import layout_of
from popple.graph import Attr


def lower_batch_norm(context: OpContext) -> Sequence[Known]:
    """Result, mean, variance, and both once more as saved for the gradient."""
    result = context.result_type()
    layout = layout_of(context, len(result.shape))
    channels = context.input_type(1)
    is_training = bool(context.attr("is_training", True))
    kind = "batch_norm" if is_training else "batch_norm_inference"
    field = layout.first(context, context.name(0))
    # In training, TensorFlow passes empty tensors for the running statistics.
    used = [index for index in range(1, 5) if context.input_type(index).num_elements]
    made, mean, deviation = context.emit(
        kind,
        [field, *(context.name(index) for index in used)],
        [layout.type_first(result), channels, channels],
        attrs={"num_statistics": channels.num_elements},
    )
    rest = len(context.op.outputs) - 5
    # Statistics to return and statistics kept for the gradient are one tensor here.
    saved = [mean, deviation, mean, deviation, *(None,) * rest]
    return [layout.last(context, made), *saved]


def lower_batch_norm_gradient(context: OpContext) -> Sequence[Known]:
    """Output gradient, field, scale and saved statistics; three gradients."""
    result = context.result_type()
    layout = layout_of(context, len(result.shape))
    channels = context.input_type(2)
    field = [layout.first(context, context.name(index)) for index in (0, 1)]
    attrs: dict[str, Attr] = {"num_statistics": channels.num_elements}
    made, scale, shift = context.emit(
        "batch_norm_grad",
        [*field, *(context.name(index) for index in (2, 3, 4))],
        [layout.type_first(result), channels, channels],
        attrs=attrs,
    )
    rest = len(context.op.outputs) - 3
    return [layout.last(context, made), scale, shift, *(None,) * rest]


RULES: dict[str, Rule] = {
    "FusedBatchNorm": lower_batch_norm,
    "FusedBatchNormV2": lower_batch_norm,
    "FusedBatchNormV3": lower_batch_norm,
    "FusedBatchNormGrad": lower_batch_norm_gradient,
    "FusedBatchNormGradV2": lower_batch_norm_gradient,
    "FusedBatchNormGradV3": lower_batch_norm_gradient,
}
