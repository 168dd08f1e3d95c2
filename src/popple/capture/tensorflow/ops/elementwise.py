"""Element-by-element ops and their gradients, conversions of element type included."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import (
    CarriedList,
    Known,
    StackedList,
    TensorList,
)
from popple.capture.tensorflow.ops.forms import (
    elementwise,
    emit_elementwise,
    is_number,
    same_value,
    without_numbers,
)
from popple.capture.tensorflow.ops.lists import add_lists
from popple.graph import DType, TensorType
from popple.marks import HALF

# Ops that the machine has no codelet for get the kind of the nearest one in cost;
# values do not come from here.
_KINDS = {
    "Abs": "abs",
    "Acos": "tan",
    "Acosh": "log",
    "Asin": "tan",
    "Asinh": "log",
    "Atan": "atan2",
    "Atan2": "atan2",
    "Atanh": "log",
    "Ceil": "ceil",
    "ComplexAbs": "abs",
    "Conj": "neg",
    "Cos": "cos",
    "Cosh": "exp",
    "Erf": "erf",
    "Erfc": "erf",
    "Erfinv": "erf",
    "Ndtri": "erf",
    "Exp": "exp",
    "Expm1": "expm1",
    "Floor": "floor",
    "Inv": "reciprocal",
    "Invert": "bitwise_not",
    "IsFinite": "is_finite",
    "IsInf": "is_nan",
    "IsNan": "is_nan",
    "LeakyRelu": "leaky_relu",
    "Log": "log",
    "Log1p": "log1p",
    "LogicalNot": "logical_not",
    "Neg": "neg",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Relu6": "hardtanh",
    "Rint": "round",
    "Round": "round",
    "Rsqrt": "rsqrt",
    "Selu": "elu",
    "Elu": "elu",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "exp",
    "Softplus": "softplus",
    "Softsign": "div",
    "Sqrt": "sqrt",
    "Square": "square",
    "Tan": "tan",
    "Tanh": "tanh",
    "Add": "add",
    "AddV2": "add",
    "Sub": "sub",
    "Mul": "mul",
    "MulNoNan": "mul",
    "Div": "div",
    "DivNoNan": "div",
    "RealDiv": "div",
    "FloorDiv": "div",
    "TruncateDiv": "div",
    "FloorMod": "remainder",
    "Mod": "remainder",
    "TruncateMod": "remainder",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Pow": "pow",
    "Xdivy": "div",
    "NextAfter": "add",
    "ApproximateEqual": "equal",
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "LogicalAnd": "logical_and",
    "LogicalOr": "logical_or",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "LeftShift": "shift_left",
    "RightShift": "shift_right",
    "ClipByValue": "clamp",
}
# Gradients: the inputs that are the output's gradient and what it was computed from.
_GRADIENTS = {
    "ReluGrad": ("relu_grad", (0, 1)),
    "Relu6Grad": ("hardtanh_grad", (0, 1)),
    "LeakyReluGrad": ("leaky_relu_grad", (0, 1)),
    "EluGrad": ("elu_grad", (0, 1)),
    "SeluGrad": ("elu_grad", (0, 1)),
    "SoftplusGrad": ("softplus_grad", (0, 1)),
    "SoftsignGrad": ("softplus_grad", (0, 1)),
    "SigmoidGrad": ("sigmoid_grad", (1, 0)),
    "TanhGrad": ("tanh_grad", (1, 0)),
    "SqrtGrad": ("tanh_grad", (1, 0)),
    "RsqrtGrad": ("sigmoid_grad", (1, 0)),
    "ReciprocalGrad": ("tanh_grad", (1, 0)),
    "InvGrad": ("tanh_grad", (1, 0)),
}
# Powers the machine computes with a cheaper op than a general power.
_POWERS = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}


def lower_pow(context: OpContext) -> Sequence[Known]:
    """A power with a constant exponent may be a cheaper op."""
    exponent, kind = context.constant(1), "pow"
    if exponent is not None and exponent.size == 1:
        kind = _POWERS.get(float(exponent.reshape(())), "pow")
    return [emit_elementwise(context, kind, context.inputs)]


def times_log(kind: str) -> Rule:
    """A factor times a logarithm, zero where the factor is zero."""

    def lower(context: OpContext) -> Sequence[Known]:
        x, y = context.inputs
        if isinstance(y, str):
            y = emit_elementwise(context, kind, [y], context.type_of(y), ".log")
        if not isinstance(x, str):
            return [emit_elementwise(context, "mul", [x, y])]
        product = emit_elementwise(context, "mul", [x, y], suffix=".product")
        mask = TensorType(DType.BOOL, context.type_of(x).shape)
        is_zero = emit_elementwise(context, "equal", [x], mask, ".zero")
        return [emit_elementwise(context, "select", [is_zero, product])]

    return lower


def lower_cast(context: OpContext) -> Sequence[Known]:
    """A conversion between types that are one type on the machine is nothing."""
    name, result = context.name(0), context.result_type()
    if context.type_of(name) == result or context.attr(HALF):
        return [name]
    return [emit_elementwise(context, "cast", [name])]


def lower_clip(context: OpContext) -> Sequence[Known]:
    """Bounds that are numbers are part of the op; tensors are compared in turn."""
    if context.attr(HALF):
        return same_value(context)
    bounds = [context.inputs[1], context.inputs[2]]
    if all(map(is_number, bounds)):
        return [emit_elementwise(context, "clamp", context.inputs[:1])]
    pair = [context.inputs[0], bounds[0]]
    low = emit_elementwise(context, "maximum", pair, suffix=".low")
    return [emit_elementwise(context, "minimum", [low, bounds[1]])]


def lower_select(context: OpContext) -> Sequence[Known]:
    """Mask, then two operands. Old masks stand for whole rows."""
    if context.attr(HALF):
        return [context.inputs[2]]
    result, mask = context.result_type(), context.name(0)
    shape = context.type_of(mask).shape
    # Select, before SelectV2, broadcasts from the left, all other ops from the right.
    if context.kind == "Select" and 0 < len(shape) < len(result.shape):
        rest = len(result.shape) - len(shape)
        mask = context.reshape(mask, (*shape, *(1,) * rest), ".mask")
    operands = without_numbers(context, context.inputs[1:], result)
    return [emit_elementwise(context, "select", [mask, *operands])]


def lower_sum_of_all(context: OpContext) -> Sequence[Known]:
    """AddN: one addition after the other."""
    lists = (TensorList, StackedList, CarriedList)
    if any(isinstance(known, lists) for known in context.inputs):
        return add_lists(context)
    total, *others = [known for known in context.inputs if known is not None]
    if not others:
        return [total]
    for index, other in enumerate(others, start=1):
        suffix = "" if index == len(others) else f".{index}"
        total = emit_elementwise(context, "add", [total, other], suffix=suffix)
    return [total]


def lower_bias_add(context: OpContext) -> Sequence[Known]:
    """One number for each channel."""
    if context.attr("data_format", "NHWC") != "NCHW":
        return [emit_elementwise(context, "add", context.inputs)]
    rank = len(context.result_type().shape)
    bias = context.name(1)
    shape = (*context.type_of(bias).shape, *(1,) * (rank - 2))
    aligned = context.reshape(bias, shape, ".bias")
    return [emit_elementwise(context, "add", [context.name(0), aligned])]


def lower_squared_difference(context: OpContext) -> Sequence[Known]:
    """A difference and its square."""
    found = emit_elementwise(context, "sub", context.inputs, suffix=".difference")
    return [emit_elementwise(context, "square", [found])]


def lower_bitcast(context: OpContext) -> Sequence[Known]:
    """The same bits: a view if there are as many elements."""
    name, result = context.name(0), context.result_type()
    if context.type_of(name).num_elements == result.num_elements:
        return [context.emit_one("reshape", [name], result, storage=name)]
    return [context.emit_one("slice", [name], result, storage=name)]


RULES: dict[str, Rule] = {
    **{name: elementwise(kind) for name, kind in _KINDS.items()},
    **{name: elementwise(kind, order) for name, (kind, order) in _GRADIENTS.items()},
    "AddN": lower_sum_of_all,
    "AccumulateNV2": lower_sum_of_all,
    "BiasAdd": lower_bias_add,
    "BiasAddV1": lower_bias_add,
    "Bitcast": lower_bitcast,
    "Cast": lower_cast,
    "ClipByValue": lower_clip,
    "Pow": lower_pow,
    "Select": lower_select,
    "SelectV2": lower_select,
    "SquaredDifference": lower_squared_difference,
    "Xlog1py": times_log("log1p"),
    "Xlogy": times_log("log"),
}
