"""Views, which are free, and rearrangements, which are not."""

from __future__ import annotations

from popple.capture.torch.aten.forms import AttrsOf, Lowering, one_op, same_value, view
from popple.capture.torch.builder import NodeContext
from popple.graph import Attr

_RESHAPES = (
    "view",
    "_unsafe_view",
    "reshape",
    "_reshape_alias",
    "unsqueeze",
    "squeeze",
    "flatten",
    "view_as_real",
    "view_as_complex",
)
_SLICES = (
    "slice",
    "select",
    "narrow",
    "split",
    "split_with_sizes",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "chunk",
    "unbind",
    "as_strided",
    "unfold",
)
_COPIES = ("clone", "contiguous", "lift_fresh_copy", "copy", "im2col", "col2im")
_SAME = ("alias", "detach", "lift_fresh", "lift", "_conj", "resolve_conj")


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


def lower_overwrite(context: NodeContext) -> None:
    """`a.copy_(b)`: the elements of b in the memory of a."""
    target, source = context.args[:2]
    storage = context.builder.name_of(target)
    kind = context.type_of(target)
    (name,) = context.emit("update_slice", [target, source], [kind], storage=storage)
    context.builder.bind(target, name)
    context.finish(name)


LOWERINGS: dict[str, Lowering] = {
    **{f"aten.{name}": view("reshape") for name in _RESHAPES},
    **{f"aten.{name}": view("slice") for name in _SLICES},
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
    "aten.reflection_pad1d": one_op("pad"),
    "aten.reflection_pad2d": one_op("pad"),
    "aten.replication_pad1d": one_op("pad"),
    "aten.replication_pad2d": one_op("pad"),
    "aten.slice_backward": one_op("pad"),
    "aten.select_backward": one_op("pad"),
    "aten.slice_scatter": one_op("update_slice"),
    "aten.select_scatter": one_op("update_slice"),
    "aten.repeat": one_op("tile"),
    "aten.flip": one_op("flip"),
    "aten.roll": one_op("roll"),
    "aten.tril": one_op("triangle"),
    "aten.triu": one_op("triangle"),
    "aten.upsample_nearest2d": one_op("resize"),
    "aten.upsample_bilinear2d": one_op("resize"),
    "aten.upsample_nearest2d_backward": one_op("resize"),
    "aten.upsample_bilinear2d_backward": one_op("resize"),
}
