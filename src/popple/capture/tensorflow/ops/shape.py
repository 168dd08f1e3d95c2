"""Views, which are free, rearrangements, which are not, and questions about shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popple.capture.tensorflow.builder import inverse, reorder
from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.forms import (
    AttrsOf,
    lower_generic,
    one_op,
    rearranged,
    same_value,
    view,
)
from popple.graph import Attr, TensorType

_SAME = (
    "CheckNumerics",
    "CheckNumericsV2",
    "CopyHost",
    "Copy",
    "DebugIdentityV2",
    "EnsureShape",
    "Identity",
    "IdentityN",
    "PlaceholderWithDefault",
    "PreventGradient",
    "RefIdentity",
    "Snapshot",
    "StopGradient",
    "XlaClusterOutput",
)
_COPIES = (
    "BatchToSpace",
    "BatchToSpaceND",
    "DepthToSpace",
    "ExtractImagePatches",
    "ExtractVolumePatches",
    "SpaceToBatch",
    "SpaceToBatchND",
    "SpaceToDepth",
)
_RESIZES = (
    "ResizeArea",
    "ResizeBicubic",
    "ResizeBicubicGrad",
    "ResizeBilinear",
    "ResizeBilinearGrad",
    "ResizeNearestNeighbor",
    "ResizeNearestNeighborGrad",
    "ScaleAndTranslate",
    "CropAndResize",
)
_DIAGONALS = ("DiagPart", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
_SPREADS = (
    "Diag",
    "MatrixDiag",
    "MatrixDiagV2",
    "MatrixDiagV3",
    "MatrixSetDiag",
    "MatrixSetDiagV2",
    "MatrixSetDiagV3",
)


def lower_reshape(context: OpContext) -> Sequence[Known]:
    """The same elements in another shape."""
    return [context.reshape(context.name(0), context.result_type().shape)]


def lower_transpose(context: OpContext) -> Sequence[Known]:
    """Dimensions in another order."""
    order = context.ints(1)
    if order is None:
        return lower_generic(context)
    return [context.permute(context.name(0), order, "")]


def lower_broadcast(context: OpContext) -> Sequence[Known]:
    """Repeated without copying."""
    name, result = context.name(0), context.result_type()
    if context.type_of(name).shape == result.shape:
        return [name]
    return [context.emit_one("broadcast", [name], result, storage=name)]


def lower_tile(context: OpContext) -> Sequence[Known]:
    """Repeated as often as a constant says; dimensions of 1 are only looked at."""
    name, result = context.name(0), context.result_type()
    kind = context.type_of(name)
    if kind.num_elements == result.num_elements:
        return [context.reshape(name, result.shape)]
    sizes = zip(kind.shape, result.shape, strict=True)
    if all(size in (1, tiled) for size, tiled in sizes):
        return [context.emit_one("broadcast", [name], result, storage=name)]
    return [context.emit_one("tile", [name], result)]


def lower_slice(context: OpContext) -> Sequence[Known]:
    """A part: a view if its place is known, else it is copied out."""
    name, result = context.name(0), context.result_type()
    kind = context.type_of(name)
    if kind.num_elements == result.num_elements and _is_known(context):
        return [context.reshape(name, result.shape)]
    attrs = _place(context, kind)
    shown = context.emit_one("slice", [name], result, storage=name, attrs=attrs)
    if _is_known(context):
        return [shown]
    return [context.emit_one("copy", [shown], result, suffix=".copy")]


def _is_known(context: OpContext) -> bool:
    begin = context.ints(1)
    return begin is not None and not _reverses(context)


def _reverses(context: OpContext) -> bool:
    strides = context.ints(3) if len(context.inputs) > 3 else None
    return any(stride < 0 for stride in strides or ())


def _place(context: OpContext, kind: TensorType) -> dict[str, Attr]:
    """`dim` and `start` of a part that is cut from one dimension, else nothing."""
    begin = context.ints(1)
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")
    if begin is None or any(context.attr(mask) for mask in masks):
        return {}
    cut = [dim for dim, start in enumerate(begin) if start > 0]
    if len(cut) != 1 or len(begin) > len(kind.shape):
        return {}
    return {"dim": cut[0], "start": min(begin[cut[0]], kind.shape[cut[0]])}


def lower_split(context: OpContext) -> Sequence[Known]:
    """Parts that follow one another along a dimension: Split, SplitV, Unpack."""
    is_axis_first = context.kind == "Split"
    source = context.name(1 if is_axis_first else 0)
    shape = context.type_of(source).shape
    axis = _split_axis(context) % len(shape)
    names: list[Known] = []
    start = 0
    for index, kind in enumerate(context.result_types()):
        attrs = {"dim": axis, "start": start}
        suffix = f".{index}"
        names.append(
            context.emit_one(
                "slice", [source], kind, suffix=suffix, storage=source, attrs=attrs
            )
        )
        start += 1 if context.kind == "Unpack" else kind.shape[axis]
    return names


def _split_axis(context: OpContext) -> int:
    if context.kind == "Unpack":
        return int(context.attr("axis", 0))
    found = context.ints(0 if context.kind == "Split" else 2)
    if not found:
        raise context.error("the dimension it splits is not known when compiling")
    return found[0]


def lower_concat(context: OpContext) -> Sequence[Known]:
    """Tensors joined along a dimension, in the order of what they are views of."""
    axes = context.ints(0 if context.kind == "Concat" else len(context.inputs) - 1)
    parts = context.inputs[1:] if context.kind == "Concat" else context.inputs[:-1]
    result = context.result_type()
    if not axes:
        return lower_generic(context)
    rank = len(result.shape)
    names = _parts(context, parts)
    orders = {context.source_order(name, rank) for name in names}
    (order,) = orders if len(orders) == 1 else (None,)
    order = order or tuple(range(rank))
    sources = [context.in_order(name, order) for name in names]
    moved = TensorType(result.dtype, reorder(result.shape, inverse(order)))
    attrs = {"dim": order[axes[0] % rank]}
    return [
        context.permute(context.emit_one("concat", sources, moved, attrs=attrs), order)
    ]


def _parts(context: OpContext, parts: Sequence[Known]) -> list[str]:
    """The values joined; empty ones add nothing."""
    names = [
        context.name_of(part, f"{context.tag.name}.part{index}")
        for index, part in enumerate(parts)
    ]
    full = [name for name in names if context.type_of(name).num_elements]
    return full or names[:1]


def lower_pack(context: OpContext) -> Sequence[Known]:
    """Tensors stacked along a new dimension."""
    result = context.result_type()
    axis = int(context.attr("axis", 0)) % len(result.shape)
    attrs = {"dim": axis}
    return [
        context.emit_one("concat", _parts(context, context.inputs), result, attrs=attrs)
    ]


def lower_shape(context: OpContext) -> Sequence[Known]:
    """Shape and ShapeN: known when compiling."""
    return [
        np.asarray(context.input_type(index).shape, output.dtype.as_numpy_dtype)
        for index, output in enumerate(context.op.outputs)
    ]


def lower_size(context: OpContext) -> Sequence[Known]:
    """The number of elements: known when compiling."""
    dtype = context.op.outputs[0].dtype.as_numpy_dtype
    return [np.asarray(context.input_type(0).num_elements, dtype)]


def lower_rank(context: OpContext) -> Sequence[Known]:
    """The number of dimensions: known when compiling."""
    return [np.asarray(len(context.input_type(0).shape), np.int32)]


def _axes(index: int) -> AttrsOf:
    def attrs(context: OpContext) -> dict[str, Attr]:
        rank = max(len(context.result_type().shape), 1)
        return {"dims": tuple(axis % rank for axis in context.ints(index) or ())}

    return attrs


def lower_update_slice(context: OpContext) -> Sequence[Known]:
    """A tensor with a part replaced; XLA's own op has the part second, others last."""
    part = 1 if context.kind.startswith("Xla") else len(context.inputs) - 1
    sources = [context.name(0), context.name(part)]
    return [context.emit_one("update_slice", sources, context.result_type())]


def lower_slice_gradient(context: OpContext) -> Sequence[Known]:
    """StridedSliceGrad: the gradient of a part among zeros."""
    return [context.emit_one("pad", [context.name(4)], context.result_type())]


RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME, same_value),
    **dict.fromkeys(_COPIES, one_op("copy", num_inputs=1)),
    **dict.fromkeys(_RESIZES, one_op("resize", num_inputs=1)),
    **dict.fromkeys(_DIAGONALS, view("diagonal")),
    **dict.fromkeys(_SPREADS, one_op("pad", num_inputs=1)),
    "BroadcastTo": lower_broadcast,
    "Concat": lower_concat,
    "ConcatV2": lower_concat,
    "ExpandDims": lower_reshape,
    "InplaceUpdate": lower_update_slice,
    "MatrixBandPart": one_op("triangle", num_inputs=1),
    "BatchMatrixBandPart": one_op("triangle", num_inputs=1),
    "MirrorPad": rearranged("pad"),
    "MirrorPadGrad": rearranged("pad"),
    "Pack": lower_pack,
    "ParallelConcat": lower_pack,
    "Pad": rearranged("pad"),
    "PadV2": rearranged("pad"),
    "Rank": lower_rank,
    "Reshape": lower_reshape,
    "Reverse": rearranged("flip"),
    "ReverseV2": rearranged("flip", _axes(1)),
    "ReverseSequence": one_op("flip", num_inputs=1),
    "Roll": rearranged("roll", _axes(2)),
    "Shape": lower_shape,
    "ShapeN": lower_shape,
    "Size": lower_size,
    "Slice": lower_slice,
    "Split": lower_split,
    "SplitV": lower_split,
    "Squeeze": lower_reshape,
    "StridedSlice": lower_slice,
    "StridedSliceGrad": lower_slice_gradient,
    "TensorStridedSliceUpdate": lower_update_slice,
    "Tile": lower_tile,
    "Transpose": lower_transpose,
    "Unpack": lower_split,
    "XlaDynamicUpdateSlice": lower_update_slice,
}
