"""Lowering of views, which are free, and of copies, pads and concatenations."""

from __future__ import annotations

from popple.capture.torch.aten.forms import (
    AttrsOf,
    Lowering,
    emit_one,
    lower_generic,
    one_op,
    same_value,
    view,
)
from popple.capture.torch.builder import NodeContext
from popple.graph import Attr

_RESHAPES = (
    "view",
    "_unsafe_view",
    "_reshape_alias",
    "unsqueeze",
    "squeeze",
    "view_as_real",
    "view_as_complex",
)
_SPLITS = (
    "split",
    "split_with_sizes",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unbind",
)
_COPIES = (
    "clone",
    "lift_fresh_copy",
    "im2col",
    "col2im",
    "pixel_shuffle",
    "pixel_unshuffle",
)
_PADS = (
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
)
_RESIZES = (
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_bilinear2d",
    "upsample_bicubic2d",
)
_SAME = ("alias", "detach", "lift", "_conj")


def _permute_order(context: NodeContext) -> dict[str, Attr]:
    rank = len(context.result_types()[0].shape)
    return {"order": tuple(int(dim) % max(rank, 1) for dim in context.args[1])}


def _transpose_order(context: NodeContext) -> dict[str, Attr]:
    rank = len(context.result_types()[0].shape)
    order = list(range(rank))
    if rank >= 2:
        first, second = context.arg(1, 0) % rank, context.arg(2, 1) % rank
        order[first], order[second] = order[second], order[first]
    return {"order": tuple(order)}


def _dim_at(index: int, default: int = 0) -> AttrsOf:
    def attrs(context: NodeContext) -> dict[str, Attr]:
        rank = max(len(context.result_types()[0].shape), 1)
        return {"dim": int(context.arg(index, default)) % rank}

    return attrs


def _slice_place(context: NodeContext) -> dict[str, Attr]:
    """Where a slice begins: `dim` and `start` of aten.slice and aten.select."""
    shape = context.type_of(context.inputs()[0]).shape
    dim = int(context.arg(1, 0)) % max(len(shape), 1)
    start = int(context.arg(2) or 0)
    size = shape[dim] if shape else 1
    # As in Python: negative numbers count from the end, and any number is cut to the
    # size.
    return {"dim": dim, "start": min(max(start + size * (start < 0), 0), size)}


def lower_split(context: NodeContext) -> None:
    """Parts that follow one another along a dimension."""
    source = context.inputs()[0]
    shape = context.type_of(source).shape
    is_unbind = context.operator.startswith("aten.unbind")
    dim = int(context.arg(1 if is_unbind else 2, 0)) % len(shape)
    name = context.builder.name_of(source)
    names: list[str] = []
    start = 0
    for index, kind in enumerate(context.result_types()):
        names += context.emit(
            "slice",
            [source],
            [kind],
            suffix=f".{index}",
            storage=name,
            attrs={"dim": dim, "start": start},
        )
        start += 1 if is_unbind else kind.shape[dim]
    context.finish_all(names)


_reshape = view("reshape")


def lower_reshape(context: NodeContext) -> None:
    """A view, unless it cuts elements into smaller ones: `x.view(torch.uint8)`."""
    source, result = context.type_of(context.inputs()[0]), context.result_types()[0]
    if source.num_elements == result.num_elements:
        _reshape(context)
    else:
        lower_generic(context)


def lower_pad_gradient(context: NodeContext) -> None:
    """Elements of the border added to those they repeat."""
    emit_one(context, "pad", sources=context.inputs()[:1])


def lower_overwrite(context: NodeContext) -> None:
    """`a.copy_(b)`: the elements of b in the memory of a."""
    emit_one(context, "update_slice", sources=context.args[:2])


LOWERINGS: dict[str, Lowering] = {
    **{f"aten.{name}": lower_reshape for name in _RESHAPES},
    **{f"aten.{name}": lower_split for name in _SPLITS},
    "aten.slice": view("slice", _slice_place),
    "aten.select": view("slice", _slice_place),
    "aten.as_strided": view("slice"),
    "aten.unfold": view("slice"),
    **{f"aten.{name}": one_op("copy") for name in _COPIES},
    **{f"aten.{name}": same_value for name in _SAME},
    "aten.permute": view("permute", _permute_order),
    "aten.transpose": view("permute", _transpose_order),
    "aten.t": view("permute", _transpose_order),
    "aten.expand": view("broadcast"),
    "aten.diagonal": view("diagonal"),
    "aten.copy_": lower_overwrite,
    "aten.cat": one_op("concat", _dim_at(1)),
    "aten.stack": one_op("concat", _dim_at(1)),
    "aten.constant_pad_nd": one_op("pad"),
    **{f"aten.{name}": one_op("pad") for name in _PADS},
    **{f"aten.{name}_backward": lower_pad_gradient for name in _PADS},
    "aten.slice_backward": one_op("pad"),
    "aten.select_backward": one_op("pad"),
    "aten.slice_scatter": one_op("update_slice"),
    "aten.select_scatter": one_op("update_slice"),
    "aten.repeat": one_op("tile"),
    "aten.flip": one_op("flip"),
    "aten.roll": one_op("roll"),
    "aten.tril": one_op("triangle"),
    "aten.triu": one_op("triangle"),
    **{f"aten.{name}": one_op("resize") for name in _RESIZES},
    **{f"aten.{name}_backward": one_op("resize") for name in _RESIZES},
}
