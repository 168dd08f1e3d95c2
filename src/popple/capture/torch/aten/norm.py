"""Lowering of batch, layer and group normalisation and their gradients."""

from __future__ import annotations

import math

from popple.capture.torch.aten.forms import Lowering, emit_one, one_op
from popple.capture.torch.builder import NodeContext
from popple.graph import Attr


def _batch(context: NodeContext) -> dict[str, Attr]:
    source = context.inputs()[0]
    return {"num_statistics": context.type_of(source).shape[1]}


def _layer(context: NodeContext) -> dict[str, Attr]:
    shape = context.type_of(context.inputs()[0]).shape
    # The gradient's operator has the output gradient in front of its arguments.
    normalized = context.arg(1 if "backward" not in context.operator else 2)
    outer = len(shape) - len(normalized)
    return {"num_statistics": math.prod(shape[:outer])}


def _group(context: NodeContext) -> dict[str, Attr]:
    shape = context.type_of(context.inputs()[0]).shape
    is_gradient = "backward" in context.operator
    groups = context.arg(8 if is_gradient else 6)
    return {"num_statistics": shape[0] * groups}


def lower_batch_norm(context: NodeContext) -> None:
    """Training uses the batch's statistics, inference the running ones."""
    # The overloads have the flag at different positions, and no other flag.
    is_training = any(argument is True for argument in context.args)
    kind = "batch_norm" if is_training else "batch_norm_inference"
    # This overload has no flag: it exists for training only.
    if context.operator.endswith("_with_update.default"):
        kind = "batch_norm"
    emit_one(context, kind, _batch(context))


LOWERINGS: dict[str, Lowering] = {
    "aten.native_batch_norm": lower_batch_norm,
    "aten._native_batch_norm_legit": lower_batch_norm,
    "aten._native_batch_norm_legit_functional": lower_batch_norm,
    "aten._native_batch_norm_legit_no_training": lower_batch_norm,
    "aten._batch_norm_with_update": lower_batch_norm,
    "aten.batch_norm_backward": one_op("batch_norm_grad", _batch),
    "aten.native_batch_norm_backward": one_op("batch_norm_grad", _batch),
    "aten.native_layer_norm": one_op("layer_norm", _layer),
    "aten.native_layer_norm_backward": one_op("layer_norm_grad", _layer),
    "aten.native_group_norm": one_op("group_norm", _group),
    "aten.native_group_norm_backward": one_op("group_norm_grad", _group),
}
