"""Lowering of element-wise operators, activations and casts."""

from __future__ import annotations

from torch.fx import Node

from popple.capture.torch.aten.forms import Lowering, emit_one, one_op, same_value
from popple.capture.torch.builder import NodeContext
from popple.graph import DType, TensorType
from popple.marks import GELU_ERF

# Operators that the machine has no codelet for get the kind of the nearest one in cost;
# values do not come from here.
_KINDS = {
    "neg": "neg",
    "abs": "abs",
    "exp": "exp",
    "exp2": "exp",
    "expm1": "expm1",
    "log": "log",
    "log2": "log",
    "log10": "log",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "reciprocal": "reciprocal",
    "sign": "sign",
    "sgn": "sign",
    "round": "round",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "floor",
    "frac": "floor",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "tan",
    "acos": "tan",
    "atan": "atan2",
    "sinh": "exp",
    "cosh": "exp",
    "asinh": "log",
    "acosh": "log",
    "atanh": "log",
    "erf": "erf",
    "erfc": "erf",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "relu": "relu",
    "gelu": "gelu",
    "silu": "silu",
    "mish": "silu",
    "leaky_relu": "leaky_relu",
    "elu": "elu",
    "celu": "elu",
    "softplus": "softplus",
    "hardtanh": "hardtanh",
    "hardsigmoid": "hardsigmoid",
    "hardswish": "hardswish",
    "threshold": "relu",
    "hardshrink": "hardtanh",
    "softshrink": "hardtanh",
    "nan_to_num": "clamp",
    "logical_not": "logical_not",
    "bitwise_not": "bitwise_not",
    "isnan": "is_nan",
    "isinf": "is_nan",
    "add": "add",
    "sub": "sub",
    "rsub": "sub",
    "mul": "mul",
    "div": "div",
    "floor_divide": "div",
    "remainder": "remainder",
    "fmod": "remainder",
    "maximum": "maximum",
    "minimum": "minimum",
    "fmax": "maximum",
    "fmin": "minimum",
    "atan2": "atan2",
    "copysign": "mul",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "bitwise_left_shift": "shift_left",
    "bitwise_right_shift": "shift_right",
    "where": "select",
    "masked_fill": "select",
    "addcmul": "fused_multiply_add",
    "addcdiv": "fused_divide_add",
    "lerp": "lerp",
    "threshold_backward": "relu_grad",
    "tanh_backward": "tanh_grad",
    "sigmoid_backward": "sigmoid_grad",
    "gelu_backward": "gelu_grad",
    "silu_backward": "silu_grad",
    "leaky_relu_backward": "leaky_relu_grad",
    "elu_backward": "elu_grad",
    "softplus_backward": "softplus_grad",
    "mish_backward": "silu_grad",
    "hardtanh_backward": "hardtanh_grad",
    "hardshrink_backward": "hardtanh_grad",
    "softshrink_backward": "hardtanh_grad",
    "hardsigmoid_backward": "hardsigmoid_grad",
    "hardswish_backward": "hardswish_grad",
}
# Powers the machine computes with a cheaper op than a general power.
_POWERS = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}


def lower_pow(context: NodeContext) -> None:
    """A power with a constant exponent may be a cheaper op."""
    kind = "pow"
    if isinstance(exponent := context.arg(1), (int, float)):
        kind = _POWERS.get(exponent, "pow")
    emit_one(context, kind)


def lower_hypot(context: NodeContext) -> None:
    """The root of a sum of squares."""
    squares = [
        context.emit("square", [source], [context.type_of(source)], suffix=suffix)[0]
        for source, suffix in zip(context.inputs(), (".x", ".y"), strict=True)
    ]
    (total,) = context.emit("add", squares, context.result_types(), suffix=".sum")
    emit_one(context, "sqrt", sources=[total])


def lower_log_of_sum(context: NodeContext) -> None:
    """The larger one, and log1p of the exponential of how far the other is below."""
    types = context.result_types()
    (larger,) = context.emit("maximum", context.inputs(), types, suffix=".larger")
    (found,) = context.emit("sub", context.inputs(), types, suffix=".difference")
    # This way nothing overflows: the exponent is never above 0.
    for kind in ("abs", "neg", "exp", "log1p"):
        (found,) = context.emit(kind, [found], types, suffix=f".{kind}")
    emit_one(context, "add", sources=[larger, found])


def times_log(kind: str) -> Lowering:
    """A factor times a logarithm, zero where the factor is zero."""

    def lower(context: NodeContext) -> None:
        x, y = context.arg(0), context.arg(1)
        factors: list[Node | str] = [x] if isinstance(x, Node) else []
        if isinstance(y, Node):
            factors += context.emit(kind, [y], [context.type_of(y)], suffix=".log")
        if not isinstance(x, Node):  # a number, which is zero or not
            emit_one(context, "mul", sources=factors)
            return
        types = context.result_types()
        (product,) = context.emit("mul", factors, types, suffix=".product")
        mask = TensorType(DType.BOOL, context.type_of(x).shape)
        (is_zero,) = context.emit("equal", [x], [mask], suffix=".zero")
        emit_one(context, "select", sources=[is_zero, product])

    return lower


def lower_clamp(context: NodeContext) -> None:
    """Bounds that are tensors are compared one after the other."""
    source, *bounds = context.inputs()
    if not bounds:
        emit_one(context, "clamp")
        return
    found: Node | str = source
    for bound in bounds[:-1]:
        types = context.result_types()
        (found,) = context.emit("maximum", [found, bound], types, suffix=".low")
    emit_one(context, "minimum", sources=[found, bounds[-1]])


def lower_sloped(context: NodeContext) -> None:
    """Rectifiers whose slopes are tensors, learnt or drawn."""
    emit_one(context, "leaky_relu", sources=context.inputs()[:1])


def lower_gated(context: NodeContext) -> None:
    """One half of the elements times the sigmoid of the other."""
    source = context.inputs()[0]
    name = context.builder.name_of(source)
    types = context.result_types()
    first, second = (
        context.emit("slice", [source], types, suffix=f".{part}", storage=name)[0]
        for part in ("values", "gates")
    )
    (gate,) = context.emit("sigmoid", [second], types, suffix=".sigmoid")
    emit_one(context, "mul", sources=[first, gate])


def lower_log_sigmoid(context: NodeContext) -> None:
    """The second result is scratch memory of PyTorch's kernel."""
    result, scratch = context.result_types()
    names = context.emit("softplus", context.inputs(), [result])
    names += context.emit("fill", [], [scratch], suffix=".scratch")
    context.finish_all(names)


def lower_log_sigmoid_gradient(context: NodeContext) -> None:
    """From the output gradient and the input."""
    emit_one(context, "softplus_grad", sources=context.inputs()[:2])


def lower_convert(context: NodeContext) -> None:
    """A change of element type is a cast; one of device or memory format is not."""
    source = context.inputs()[0]
    if context.type_of(source).dtype is context.result_types()[0].dtype:
        same_value(context)
        return
    emit_one(context, "cast")


LOWERINGS: dict[str, Lowering] = {
    **{f"aten.{name}": one_op(kind) for name, kind in _KINDS.items()},
    GELU_ERF: one_op("gelu_erf"),
    "aten.pow": lower_pow,
    "aten.hypot": lower_hypot,
    "aten.logaddexp": lower_log_of_sum,
    "aten.xlogy": times_log("log"),
    "aten.special_xlog1py": times_log("log1p"),
    "aten.clamp": lower_clamp,
    "aten.clamp_min": lower_clamp,
    "aten.clamp_max": lower_clamp,
    "aten._prelu_kernel": lower_sloped,
    "aten.rrelu_with_noise": lower_sloped,
    "aten.glu": lower_gated,
    "aten.log_sigmoid_forward": lower_log_sigmoid,
    "aten.log_sigmoid_backward": lower_log_sigmoid_gradient,
    "aten._to_copy": lower_convert,
    "prims.convert_element_type": lower_convert,
}
