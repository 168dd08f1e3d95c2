"""Convolutions and their gradients: 1, 2 and 3 dimensions, grouped, depthwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from popple.capture.tensorflow.builder import inverse
from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.images import (
    Layout,
    Padding,
    layout_of,
    same_padding,
)
from popple.graph import Attr, TensorType, parse_notes
from popple.marks import MULTI_CONV


@dataclass(frozen=True)
class _Window:
    """A convolution: its images and its kernel as the Graph sees them."""

    layout: Layout
    kernel: TensorType
    attrs: dict[str, Attr]


def lower_conv(context: OpContext) -> Sequence[Known]:
    """Field and kernel."""
    result = context.result_type()
    window = _window(context, context.input_type(0), context.input_type(1), result)
    field = window.layout.first(context, context.name(0))
    kernel = _kernel(context, context.name(1), window)
    made = context.emit_one(
        "conv",
        [field, kernel],
        window.layout.type_first(result),
        suffix=".conv",
        attrs=window.attrs,
        notes=parse_notes(context.attr(MULTI_CONV, "")),
    )
    return [window.layout.last(context, made)]


def lower_input_gradient(context: OpContext) -> Sequence[Known]:
    """Sizes of the field, kernel, output gradient; also a transposed convolution."""
    result, gradient = context.result_type(), context.input_type(2)
    window = _window(context, result, context.input_type(1), gradient)
    sources = [
        window.layout.first(context, context.name(2)),
        _kernel(context, context.name(1), window),
    ]
    kind = window.layout.type_first(result)
    made = context.emit_one(
        "conv_input_grad", sources, kind, suffix=".conv", attrs=window.attrs
    )
    return [window.layout.last(context, made)]


def lower_kernel_gradient(context: OpContext) -> Sequence[Known]:
    """Field, sizes of the kernel, output gradient."""
    result = context.result_type()
    window = _window(context, context.input_type(0), result, context.input_type(2))
    sources = [
        window.layout.first(context, context.name(2)),
        window.layout.first(context, context.name(0)),
    ]
    made = context.emit_one(
        "conv_weight_grad", sources, window.kernel, suffix=".conv", attrs=window.attrs
    )
    return [_kernel_of_program(context, made, result)]


def _is_depthwise(context: OpContext) -> bool:
    return context.kind.startswith("Depthwise")


def _window(
    context: OpContext, field: TensorType, kernel: TensorType, result: TensorType
) -> _Window:
    layout = layout_of(context, len(field.shape))
    stride = layout.of_field(context.attr("strides"))
    ones = [1] * len(field.shape)
    dilation = layout.of_field(context.attr("dilations", ones))
    size = kernel.shape[:-2]
    padding = _padding(context, layout, field, result, size, stride, dilation)
    channels, outputs = layout.type_first(field).shape[1], kernel.shape[-1]
    # TensorFlow has no attribute for groups: a kernel with fewer channels tells.
    groups = channels // kernel.shape[-2]
    if _is_depthwise(context):
        groups, outputs = channels, channels * kernel.shape[-1]
    shape = (outputs, channels // groups, *size)
    attrs: dict[str, Attr] = {
        "stride": stride,
        "padding": padding.before,
        "dilation": dilation,
        "groups": groups,
    }
    # Symmetric padding is written in one way only: equal convolutions have equal
    # signatures then and are planned once.
    if padding.after != padding.before:
        attrs["padding_after"] = padding.after
    return _Window(layout, TensorType(kernel.dtype, shape), attrs)


def _padding(
    context: OpContext,
    layout: Layout,
    field: TensorType,
    result: TensorType,
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Padding:
    name = context.attr("padding", "VALID")
    if name == "EXPLICIT":
        given = context.attr("explicit_paddings")
        return Padding(layout.of_field(given[::2]), layout.of_field(given[1::2]))
    if name == "VALID":
        none = (0,) * len(size)
        return Padding(none, none)
    shapes = (layout.of_field(field.shape), layout.of_field(result.shape))
    return same_padding(*shapes, size, stride, dilation)


def _kernel(context: OpContext, name: str, window: _Window) -> str:
    """[..., in, out] as [out, in, ...]; depthwise [..., in, times] as [in times, 1]."""
    shape = context.type_of(name).shape
    rank = len(shape)
    size = tuple(range(rank - 2))
    if not _is_depthwise(context):
        return context.permute(name, (rank - 1, rank - 2, *size), ".kernel")
    moved = context.permute(name, (rank - 2, rank - 1, *size), ".kernel")
    return context.reshape(moved, window.kernel.shape, ".grouped")


def _kernel_of_program(context: OpContext, name: str, result: TensorType) -> str:
    """The kernel's gradient in the order of the program's kernel."""
    rank = len(result.shape)
    size = tuple(range(rank - 2))
    if not _is_depthwise(context):
        return context.permute(name, inverse((rank - 1, rank - 2, *size)), "")
    shape = (*result.shape[-2:], *result.shape[:-2])
    shaped = context.reshape(name, shape, ".grouped")
    return context.permute(shaped, inverse((rank - 2, rank - 1, *size)), "")


RULES: dict[str, Rule] = {
    "Conv": lower_conv,
    "Conv2D": lower_conv,
    "Conv3D": lower_conv,
    "DepthwiseConv2dNative": lower_conv,
    "Conv2DBackpropInput": lower_input_gradient,
    "Conv3DBackpropInputV2": lower_input_gradient,
    "DepthwiseConv2dNativeBackpropInput": lower_input_gradient,
    "Conv2DBackpropFilter": lower_kernel_gradient,
    "Conv3DBackpropFilterV2": lower_kernel_gradient,
    "DepthwiseConv2dNativeBackpropFilter": lower_kernel_gradient,
}
