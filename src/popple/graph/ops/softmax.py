"""Softmax and log-softmax along `dim`, with gradients."""

from popple.graph.opdef import OpDef, same_shape

OPS = (
    OpDef("softmax", "softmax", "Softmax.", attrs=("dim",), check=same_shape),
    OpDef("log_softmax", "softmax", "Log-softmax.", attrs=("dim",), check=same_shape),
    OpDef(
        "softmax_grad",
        "softmax",
        "Gradient of softmax from the output gradient and the output.",
        arity=(2, 2),
        attrs=("dim",),
        check=same_shape,
    ),
    OpDef(
        "log_softmax_grad",
        "softmax",
        "Gradient of log_softmax from the output gradient and the output.",
        arity=(2, 2),
        attrs=("dim",),
        check=same_shape,
    ),
)
