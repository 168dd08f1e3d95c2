"""Convolutions and their gradients, each planned as a convolution.

The input gradient convolves the output gradient, stretched by the stride, with the
kernel turned round; the weight gradient convolves the field with the output gradient
as kernel, the batch being the channels that are summed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from popple.errors import PlanError
from popple.graph import DType, Signature, TensorType
from popple.plan.conv import ConvProblem, Operand, Roles, plan_conv
from popple.plan.conv.precision import choose_partials, widest_type
from popple.plan.conv.problem import Purpose
from popple.plan.opplan import OpPlan, PlanRequest, Rule

Dims = tuple[int, ...]


class _Precision(TypedDict):
    """Element types of operands, sums and result."""

    dtype: DType
    partials: DType
    output: DType


@dataclass(frozen=True)
class _Window:
    """Attributes of the convolution, one for each field dimension.

    `padding` is what is added before; after it is as much unless said otherwise.
    """

    stride: Dims
    padding: Dims
    padding_after: Dims
    dilation: Dims
    groups: int


def plan_conv_forward(request: PlanRequest) -> OpPlan:
    """Field [B,C,...] by kernel [O,C/groups,...]."""
    field, kernel, result = _operands(request)
    last = len(result.shape) - 1
    roles = Roles(Operand(0, field, 1), Operand(1, kernel, 1), result, 1, last)
    return plan_conv(request, "conv", _forward_problem(request), roles)


def plan_input_grad(request: PlanRequest) -> OpPlan:
    """Output gradient [B,O,...] by kernel [O,C/groups,...] gives [B,C,...]."""
    gradient, kernel, result = _operands(request)
    last = len(result.shape) - 1
    roles = Roles(Operand(0, gradient, 1), Operand(1, kernel, 0), result, 1, last)
    return plan_conv(request, "conv_input_grad", _input_grad_problem(request), roles)


def plan_weight_grad(request: PlanRequest) -> OpPlan:
    """Output gradient [B,O,...] and field [B,C,...] give [O,C/groups,...]."""
    gradient, field, result = _operands(request)
    axis = _summed_axis(field)
    roles = Roles(Operand(1, field, axis), Operand(0, gradient, axis), result, 0, 1)
    return plan_conv(request, "conv_weight_grad", _weight_grad_problem(request), roles)


def find_problem(request: PlanRequest) -> ConvProblem:
    """The convolution that an op of this family is."""
    return _PROBLEMS[request.signature.kind](request)


def _forward_problem(request: PlanRequest) -> ConvProblem:
    field, kernel, _ = _operands(request)
    window = _read_window(request.signature, len(field.shape) - 2)
    return ConvProblem(
        batch=field.shape[0],
        groups=window.groups,
        field=field.shape[2:],
        kernel=kernel.shape[2:],
        in_channels=kernel.shape[1],
        out_channels=kernel.shape[0] // window.groups,
        stride=window.stride,
        padding=_total_padding(window),
        padding_before=window.padding,
        dilation=window.dilation,
        **_precision(request),
    )


def _input_grad_problem(request: PlanRequest) -> ConvProblem:
    gradient, kernel, result = _operands(request)
    window = _read_window(request.signature, len(gradient.shape) - 2)
    return ConvProblem(
        batch=gradient.shape[0],
        groups=window.groups,
        field=gradient.shape[2:],
        kernel=kernel.shape[2:],
        in_channels=kernel.shape[0] // window.groups,
        out_channels=kernel.shape[1],
        # The stride of the forward pass becomes zeros between the gradient's elements.
        stride=(1,) * len(window.stride),
        padding=_full_padding(gradient, kernel, result, window),
        padding_before=_turned_padding(kernel, window),
        dilation=window.dilation,
        upsampling=window.stride,
        **_precision(request),
    )


def _weight_grad_problem(request: PlanRequest) -> ConvProblem:
    gradient, field, result = _operands(request)
    window = _read_window(request.signature, len(field.shape) - 2)
    return ConvProblem(
        # Channels of the field are independent here, as samples are in the forward
        # pass, and the batch is summed over, as channels are there.
        batch=field.shape[1] // window.groups,
        groups=window.groups,
        field=field.shape[2:],
        kernel=gradient.shape[2:],
        in_channels=field.shape[0],
        out_channels=gradient.shape[1] // window.groups,
        # Stride and dilation exchange roles together with output and kernel.
        stride=window.dilation,
        padding=_fitting_padding(gradient, field, result, window),
        padding_before=window.padding,
        dilation=window.stride,
        purpose=Purpose.WEIGHT_GRAD,
        **_precision(request),
    )


def _operands(request: PlanRequest) -> tuple[TensorType, TensorType, TensorType]:
    """Both inputs and the output; refuses what has nothing to compute."""
    signature = request.signature
    first, second = signature.inputs
    result = signature.outputs[0]
    for tensor in (first, second, result):
        if len(tensor.shape) < 3 or 0 in tensor.shape:
            raise PlanError(
                f"{signature}: {tensor} is no batch of fields with channels.",
                remedy="Convolutions need [batch, channels, field...], none empty.",
            )
    return first, second, result


def _read_window(signature: Signature, rank: int) -> _Window:
    padding = _per_dimension(signature, "padding", rank)
    return _Window(
        stride=_per_dimension(signature, "stride", rank),
        padding=padding,
        padding_after=signature.ints("padding_after") or padding,
        dilation=_per_dimension(signature, "dilation", rank),
        groups=signature.integer("groups"),
    )


def _per_dimension(signature: Signature, name: str, rank: int) -> Dims:
    """The attribute for each field dimension; a single number serves all."""
    given = signature.ints(name)
    return given * rank if len(given) == 1 else given


def _total_padding(window: _Window) -> Dims:
    sides = zip(window.padding, window.padding_after, strict=True)
    return tuple(before + after for before, after in sides)


def _full_padding(
    gradient: TensorType, kernel: TensorType, result: TensorType, window: _Window
) -> Dims:
    """Padding with which the stretched gradient gives exactly the field's size."""
    sizes = zip(
        gradient.shape[2:],
        kernel.shape[2:],
        result.shape[2:],
        window.stride,
        window.dilation,
        strict=True,
    )
    return tuple(
        n + (k - 1) * dilation - ((g - 1) * stride + 1)
        for g, k, n, stride, dilation in sizes
    )


def _turned_padding(kernel: TensorType, window: _Window) -> Dims:
    """Padding before the gradient: what of the turned kernel hangs over."""
    sizes = zip(kernel.shape[2:], window.dilation, window.padding, strict=True)
    return tuple((k - 1) * dilation - pad for k, dilation, pad in sizes)


def _fitting_padding(
    gradient: TensorType, field: TensorType, result: TensorType, window: _Window
) -> Dims:
    """Padding with which the gradient as kernel leaves exactly the kernel's size.

    A field that the stride does not divide has a rest nobody has seen: it is cut off.
    """
    sizes = zip(
        gradient.shape[2:],
        field.shape[2:],
        result.shape[2:],
        window.stride,
        window.dilation,
        strict=True,
    )
    return tuple(
        (k - 1) * dilation + (g - 1) * stride + 1 - n
        for g, n, k, stride, dilation in sizes
    )


def _summed_axis(field: TensorType) -> int:
    """The sum runs over batch and positions: adjacent along whichever is longer."""
    last = len(field.shape) - 1
    return 0 if field.shape[0] > field.shape[last] else last


def _precision(request: PlanRequest) -> _Precision:
    signature = request.signature
    dtype = widest_type(*(tensor.dtype for tensor in signature.inputs))
    return {
        "dtype": dtype,
        "partials": choose_partials(dtype, request.options.partials),
        "output": signature.outputs[0].dtype,
    }


_PROBLEMS: dict[str, Callable[[PlanRequest], ConvProblem]] = {
    "conv": _forward_problem,
    "conv_input_grad": _input_grad_problem,
    "conv_weight_grad": _weight_grad_problem,
}
RULES: dict[str, Rule] = {
    "conv": plan_conv_forward,
    "conv_input_grad": plan_input_grad,
    "conv_weight_grad": plan_weight_grad,
}
