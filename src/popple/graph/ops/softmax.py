"""Softmax and log-softmax along a dimension, with gradients."""

from popple.graph.attrs import integer
from popple.graph.opdef import OpDef, same_shape

_DIM = integer("dim", "The dimension along which elements add up to 1.")

OPS = (
    OpDef("softmax", "softmax", "Softmax.", attrs=(_DIM,), check=same_shape),
    OpDef("log_softmax", "softmax", "Log-softmax.", attrs=(_DIM,), check=same_shape),
    OpDef(
        "softmax_grad",
        "softmax",
        "Gradient of softmax from the output gradient and the output.",
        arity=(2, 2),
        attrs=(_DIM,),
        check=same_shape,
    ),
    OpDef(
        "log_softmax_grad",
        "softmax",
        "Gradient of log_softmax from the output gradient and the output.",
        arity=(2, 2),
        attrs=(_DIM,),
        check=same_shape,
    ),
)
