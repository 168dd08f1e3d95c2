"""Lowering of convolutions, transposed convolutions and their gradients."""

from __future__ import annotations

from typing import Any

from popple.capture.torch.aten.forms import Lowering
from popple.capture.torch.builder import NodeContext
from popple.graph import Attr, TensorType


def _attrs(arguments: tuple[Any, ...]) -> dict[str, Attr]:
    """From (stride, padding, dilation, transposed, output padding, groups)."""
    stride, padding, dilation, _, _, groups = arguments
    return {
        "stride": tuple(stride),
        "padding": tuple(padding),
        "dilation": tuple(dilation),
        "groups": groups,
    }


def lower_convolution(context: NodeContext) -> None:
    """Field, kernel, bias; a transposed convolution is the input gradient's twin."""
    field, kernel, bias = context.args[:3]
    attrs = _attrs(context.args[3:9])
    # A transposed convolution computes what the gradient of a plain one computes for
    # its input, so the planner has one rule for both.
    kind = "conv_input_grad" if context.args[6] else "conv"
    result = context.result_types()
    suffix = ".product" if bias is not None else ""
    names = context.emit(kind, [field, kernel], result, suffix=suffix, attrs=attrs)
    if bias is not None:
        channels = _channelwise(context, bias, len(result[0].shape))
        names = context.emit("add", [names[0], channels], result)
    context.finish_all(names)


def _channelwise(context: NodeContext, bias: Any, rank: int) -> str:
    """The bias shaped to broadcast along channels."""
    kind = context.type_of(bias)
    shaped = TensorType(kind.dtype, (*kind.shape, *(1,) * (rank - 2)))
    name = context.builder.name_of(bias)
    (result,) = context.emit("reshape", [bias], [shaped], suffix=".bias", storage=name)
    return result


def lower_convolution_backward(context: NodeContext) -> None:
    """Up to three gradients: of the field, the kernel and the bias."""
    gradient, field, kernel = context.args[:3]
    attrs = _attrs(context.args[4:10])
    is_transposed = bool(context.args[7])
    results = context.result_tensors()
    names: list[str | None] = [None, None, None]
    if results[0] is not None:
        kind = "conv" if is_transposed else "conv_input_grad"
        types = [context.type_of(field)]
        sources = [gradient, kernel]
        (names[0],) = context.emit(kind, sources, types, suffix=".field", attrs=attrs)
    if results[1] is not None:
        types = [context.type_of(kernel)]
        # The roles of field and gradient are exchanged with those of a plain
        # convolution.
        pair = [field, gradient] if is_transposed else [gradient, field]
        names[1] = context.emit(
            "conv_weight_grad", pair, types, suffix=".kernel", attrs=attrs
        )[0]
    if results[2] is not None:
        names[2] = _bias_gradient(context, gradient)
    context.finish(names)


def _bias_gradient(context: NodeContext, gradient: Any) -> str:
    kind = context.type_of(gradient)
    # All but channels, the second dimension.
    dims = (0, *range(2, len(kind.shape)))
    channels = TensorType(kind.dtype, (kind.shape[1],))
    (name,) = context.emit(
        "reduce_sum", [gradient], [channels], suffix=".bias", attrs={"dims": dims}
    )
    return name


LOWERINGS: dict[str, Lowering] = {
    "aten.convolution": lower_convolution,
    "aten.convolution_backward": lower_convolution_backward,
}
