"""Normalisations: statistics by one fused reduction, then element-wise passes.

As in PopLibs poplin/Norms.cpp: a sum and a sum of squares, of what is left without the
mean if statistics are to be stable, the inverse standard deviation on the small
results, then (x - mean) times it, then scale and shift. Backward the input is
normalised again, products with the gradient are reduced for scale and shift and for the
statistics, and the gradient is put together in four passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from popple.graph import DType, Signature, TensorType
from popple.plan.blocks.broadcast import (
    add_binary,
    add_multicast,
    add_statistics_pass,
    add_unary,
)
from popple.plan.blocks.operands import (
    Operand,
    bring_operands,
    choose_result_mapping,
    request_operands,
)
from popple.plan.blocks.reduction import Reduction, add_reduction, reduced_type
from popple.plan.builder import PlanBuilder
from popple.plan.mapping import dithered_tile, linear_mapping, mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping


@dataclass(frozen=True)
class _Normed:
    """The normalised tensor as seen by its statistics and by scale and shift."""

    tensor: TensorType
    kept: tuple[bool, ...]
    scale_tensor: TensorType
    scale_kept: tuple[bool, ...]


def plan_norm(request: PlanRequest) -> OpPlan:
    """Statistics of the input, then normalise, scale and shift."""
    builder, target, wishes, normed = _begin(request)
    tensor = normed.tensor
    rows, source = _add_statistics(builder, normed, target)
    add_unary(builder, "rsqrt", rows, source)
    needs = add_multicast(
        builder, "statistics", tensor, target, normed.kept, source, DType.F32
    )
    add_statistics_pass(builder, "sub", tensor, target, normed.kept, needs)
    add_statistics_pass(builder, "mul", tensor, target, normed.kept, None)
    if len(request.inputs) > 1:
        _add_scale_and_shift(builder, normed, target)
    return builder.finish(_outputs(builder, target, rows, source), wishes)


def _add_statistics(
    builder: PlanBuilder, normed: _Normed, target: TileMapping
) -> tuple[TensorType, TileMapping]:
    """Mean and mean square, which stable statistics take of the centred input."""
    tensor, kept = normed.tensor, normed.kept
    if not builder.request.options.stable_statistics:
        both = Reduction("ADD_AND_SQUARE_ADD", tensor, kept, 1, 2)
        rows = reduced_type(both, DType.F32)
        return rows, _add_sums(builder, "statistics", both, target, rows)
    total = Reduction("ADD", tensor, kept)
    rows = reduced_type(total, DType.F32)
    mean = _add_sums(builder, "mean", total, target, rows)
    needs = add_multicast(builder, "mean", tensor, target, kept, mean, DType.F32)
    centred = builder.position
    add_statistics_pass(builder, "sub", tensor, target, kept, needs)
    squares = Reduction("SQUARE_ADD", tensor, kept)
    source = _add_sums(builder, "power", squares, target, rows)
    builder.hold("centred", target.bytes_by_tile, centred)
    return rows, source


def plan_norm_inference(request: PlanRequest) -> OpPlan:
    """Running statistics folded into one scale and one shift per channel."""
    builder, target, wishes, normed = _begin(request)
    channels = TensorType(DType.F32, (_num_statistics(request.signature),))
    mapping = _small(builder, channels)
    add_unary(builder, "rsqrt", channels, mapping)
    add_binary(builder, "mul", channels, mapping)
    needs = add_multicast(
        builder, "scale", normed.tensor, target, normed.kept, mapping, DType.F32
    )
    add_statistics_pass(builder, "mul", normed.tensor, target, normed.kept, needs)
    add_statistics_pass(builder, "add", normed.tensor, target, normed.kept, None)
    return builder.finish(_outputs(builder, target, channels, mapping), wishes)


def plan_norm_grad(request: PlanRequest) -> OpPlan:
    """Gradients of scale and shift, those of the statistics, passes for the input."""
    builder, target, wishes, normed = _begin(request)
    tensor, first = normed.tensor, builder.position
    reduction = Reduction("ADD", tensor, normed.kept, num_results=2)
    rows = reduced_type(reduction, DType.F32)
    _add_normalised(builder, normed, target, _small(builder, rows))
    columns, column_mapping = _add_scale_gradients(builder, normed, target)
    add_binary(builder, "mul", tensor, target)
    product = builder.position - 1
    source = _add_sums(builder, "statistics", reduction, target, rows)
    builder.hold("product", target.bytes_by_tile, product)
    needs = add_multicast(
        builder, "statistics", tensor, target, normed.kept, source, DType.F32
    )
    # The passes below write in place; the gradient itself belongs to another op.
    builder.local_copy("gradient", target.bytes_by_tile, tensor.dtype)
    add_statistics_pass(builder, "mul", tensor, target, normed.kept, needs)
    add_statistics_pass(builder, "add", tensor, target, normed.kept, None)
    add_binary(builder, "add", tensor, target, "ScaledAdd")
    add_statistics_pass(builder, "mul", tensor, target, normed.kept, None)
    builder.hold("normalised", target.bytes_by_tile, first)
    return builder.finish(_outputs(builder, target, columns, column_mapping), wishes)


def _add_sums(
    builder: PlanBuilder,
    name: str,
    reduction: Reduction,
    source: TileMapping,
    result: TensorType,
) -> TileMapping:
    return add_reduction(builder, name, reduction, source, result, _first_tile(builder))


def _small(builder: PlanBuilder, tensor: TensorType) -> TileMapping:
    """Where statistics, scales and shifts lie that nobody has laid out."""
    return linear_mapping(tensor, builder.chip, _first_tile(builder))


def _first_tile(builder: PlanBuilder) -> int:
    shape = builder.request.signature.inputs[0].shape
    return dithered_tile(shape, builder.chip.num_tiles)


def _add_normalised(
    builder: PlanBuilder, normed: _Normed, target: TileMapping, saved: TileMapping
) -> None:
    """The normalised input again, from the statistics the forward op kept."""
    needs = add_multicast(
        builder, "saved", normed.tensor, target, normed.kept, saved, DType.F32
    )
    add_statistics_pass(builder, "sub", normed.tensor, target, normed.kept, needs)
    add_statistics_pass(builder, "mul", normed.tensor, target, normed.kept, None)


def _add_scale_gradients(
    builder: PlanBuilder, normed: _Normed, target: TileMapping
) -> tuple[TensorType, TileMapping]:
    """Gradients of scale and shift, and what the scale leaves of the gradient.

    Both only if there is a scale, as the results tell.
    """
    tensor, kept = normed.scale_tensor, normed.scale_kept
    reduction = Reduction("ADD", tensor, kept, num_results=2)
    columns = reduced_type(reduction, DType.F32)
    if len(builder.request.signature.outputs) == 1:
        return columns, _small(builder, columns)
    add_binary(builder, "mul", tensor, target)
    product = builder.position - 1
    mapping = _add_sums(builder, "scale-shift", reduction, target, columns)
    builder.hold("scale-shift/product", target.bytes_by_tile, product)
    needs = add_multicast(
        builder, "scale", tensor, target, kept, _small(builder, columns), tensor.dtype
    )
    add_statistics_pass(builder, "mul", tensor, target, kept, needs)
    return columns, mapping


_Begun = tuple[PlanBuilder, TileMapping, tuple[TileMapping | None, ...], _Normed]


def _begin(request: PlanRequest) -> _Begun:
    builder = PlanBuilder(request, "norm")
    signature = request.signature
    result = signature.inputs[0]
    operands = request_operands(builder)
    full = tuple(operand for operand in operands if operand.is_full(result))
    target = choose_result_mapping(builder, full, result)
    wishes = bring_operands(builder, full, target, result)
    builder.note("statistics", _num_statistics(signature))
    return builder, target, _spread(wishes, operands, result), _view(signature)


def _spread(
    wishes: tuple[TileMapping | None, ...],
    operands: tuple[Operand, ...],
    result: TensorType,
) -> tuple[TileMapping | None, ...]:
    """Wishes of the full operands at their places among all operands."""
    given = iter(wishes)
    return tuple(next(given) if o.is_full(result) else None for o in operands)


def _num_statistics(signature: Signature) -> int:
    count = signature.integer("num_statistics")
    return max(1, count)


def _view(signature: Signature) -> _Normed:
    """Batch norm keeps channels, the second dimension; the others leading ones."""
    tensor = signature.inputs[0]
    dtype, count = tensor.dtype, tensor.num_elements
    if signature.kind.startswith("batch_norm"):
        batch = (*tensor.shape, 1)[0]
        channels = _num_statistics(signature)
        inner = max(1, count // max(1, batch * channels))
        shaped = TensorType(dtype, (batch, channels, inner))
        kept = (False, True, False)
        return _Normed(shaped, kept, shaped, kept)
    rows = _num_statistics(signature)
    shaped = TensorType(dtype, (rows, max(1, count // rows)))
    return _Normed(shaped, (True, False), *_scale_view(signature, tensor))


def _scale_view(
    signature: Signature, tensor: TensorType
) -> tuple[TensorType, tuple[bool, ...]]:
    """Scale and shift: trailing dimensions of layer norm, channels of group norm."""
    if signature.kind.startswith("layer_norm"):
        columns = tensor.num_elements // _num_statistics(signature)
        rows = max(1, tensor.num_elements // max(1, columns))
        return TensorType(tensor.dtype, (rows, columns)), (False, True)
    batch, channels, *inner = (*tensor.shape, 1, 1)
    view = TensorType(tensor.dtype, (batch, channels, math.prod(inner)))
    return view, (False, True, False)


def _add_scale_and_shift(
    builder: PlanBuilder, normed: _Normed, target: TileMapping
) -> None:
    tensor, kept = normed.scale_tensor, normed.scale_kept
    scale = TensorType(
        tensor.dtype,
        tuple(d if k else 1 for d, k in zip(tensor.shape, kept, strict=True)),
    )
    source = builder.request.inputs[1] or _small(builder, scale)
    needs = add_multicast(builder, "scale", tensor, target, kept, source, tensor.dtype)
    add_statistics_pass(builder, "mul", tensor, target, kept, needs)
    add_statistics_pass(builder, "add", tensor, target, kept, None)


def _outputs(
    builder: PlanBuilder, target: TileMapping, small: TensorType, source: TileMapping
) -> list[TileMapping]:
    """The result like the input, sums where they were made, others linear."""
    signature = builder.request.signature
    full = signature.inputs[0].num_elements
    likes = {small.num_elements: source, full: target}
    return [
        mapping_like(likes[tensor.num_elements], tensor)
        if tensor.num_elements in likes
        else _small(builder, tensor)
        for tensor in signature.outputs
    ]


RULES: dict[str, Rule] = {
    "batch_norm": plan_norm,
    "layer_norm": plan_norm,
    "group_norm": plan_norm,
    "batch_norm_inference": plan_norm_inference,
    "batch_norm_grad": plan_norm_grad,
    "layer_norm_grad": plan_norm_grad,
    "group_norm_grad": plan_norm_grad,
}
