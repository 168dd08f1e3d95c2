"""Convolutions and their gradients, channels second, any number of field dimensions.

Inputs: `conv` takes field and kernel [out, in/groups, ...]; `conv_input_grad` the
output gradient and the kernel; `conv_weight_grad` the output gradient and the field.
A transposed convolution is a `conv_input_grad` in the forward phase. Fields are padded
by `padding` at both ends, or by `padding_after` at the far one.
"""

from popple.graph.opdef import OpDef

_ATTRS = ("stride", "padding", "dilation", "groups")

OPS = (
    OpDef("conv", "conv", "Convolution.", arity=(2, 2), attrs=_ATTRS),
    OpDef(
        "conv_input_grad",
        "conv",
        "Gradient of a convolution for its field.",
        arity=(2, 2),
        attrs=_ATTRS,
    ),
    OpDef(
        "conv_weight_grad",
        "conv",
        "Gradient of a convolution for its kernel.",
        arity=(2, 2),
        attrs=_ATTRS,
    ),
)
