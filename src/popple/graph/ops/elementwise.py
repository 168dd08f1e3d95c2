"""Element by element: one, two or three operands, and gradients of activations."""

from popple.graph.opdef import OpDef, broadcasts, same_shape

_UNARY = {
    "neg": "-x",
    "abs": "|x|",
    "exp": "e to the x",
    "expm1": "e to the x, minus 1",
    "log": "natural logarithm",
    "log1p": "logarithm of 1 + x",
    "sqrt": "square root",
    "rsqrt": "one over the square root",
    "reciprocal": "1 / x",
    "square": "x times x",
    "sign": "-1, 0 or 1",
    "round": "nearest integer",
    "floor": "largest integer not above",
    "ceil": "smallest integer not below",
    "sin": "sine",
    "cos": "cosine",
    "tan": "tangent",
    "erf": "error function",
    "tanh": "hyperbolic tangent",
    "sigmoid": "logistic function",
    "relu": "max(x, 0)",
    "gelu": "Gaussian error linear unit",
    "gelu_erf": "Gaussian error linear unit by the error function, not by tanh",
    "silu": "x sigmoid(x), also called swish",
    "leaky_relu": "x or a multiple of x below 0",
    "elu": "x or e to the x, minus 1, below 0",
    "softplus": "log(1 + e to the x)",
    "hardtanh": "x clamped to a range",
    "hardsigmoid": "piecewise linear sigmoid",
    "hardswish": "x hardsigmoid(x)",
    "logical_not": "not x",
    "bitwise_not": "bits flipped",
    "is_nan": "whether x is not a number",
    "is_finite": "whether x is finite",
    "clamp": "x limited to a range",
}
_BINARY = {
    "add": "x + y",
    "sub": "x - y",
    "mul": "x y",
    "div": "x / y",
    "pow": "x to the y",
    "remainder": "rest of the division",
    "maximum": "larger one",
    "minimum": "smaller one",
    "atan2": "angle of a point",
    "equal": "x = y",
    "not_equal": "x != y",
    "less": "x < y",
    "less_equal": "x <= y",
    "greater": "x > y",
    "greater_equal": "x >= y",
    "logical_and": "x and y",
    "logical_or": "x or y",
    "logical_xor": "x differs from y",
    "bitwise_and": "bits of both",
    "bitwise_or": "bits of either",
    "bitwise_xor": "bits of one",
    "shift_left": "bits moved up",
    "shift_right": "bits moved down",
}
_TERNARY = {
    "select": "x where the mask holds, else y",
    "fused_multiply_add": "x + s y z",
    "fused_divide_add": "x + s y / z",
    "lerp": "x + w (y - x)",
}
_GRADS = {
    "relu_grad": "gradient where the output is positive",
    "tanh_grad": "gradient times 1 - y y",
    "sigmoid_grad": "gradient times y (1 - y)",
    "gelu_grad": "gradient of gelu",
    "silu_grad": "gradient of silu",
    "leaky_relu_grad": "gradient of leaky_relu",
    "elu_grad": "gradient of elu",
    "softplus_grad": "gradient of softplus",
    "hardtanh_grad": "gradient of hardtanh",
    "hardsigmoid_grad": "gradient of hardsigmoid",
    "hardswish_grad": "gradient of hardswish",
}


def _family(docs: dict[str, str], arity: tuple[int, int]) -> tuple[OpDef, ...]:
    check = same_shape if arity == (1, 1) else broadcasts
    return tuple(
        OpDef(name, "elementwise", f"Element by element: {doc}.", arity, check=check)
        for name, doc in docs.items()
    )


OPS = (
    *_family(_UNARY, (1, 1)),
    *_family(_BINARY, (1, 2)),  # one input: the other operand is a constant
    *_family(_TERNARY, (2, 3)),
    *_family(_GRADS, (2, 3)),
)
