"""Convolutions and their gradients, channels second, any number of field dimensions.

Inputs: `conv` takes field and kernel [out, in/groups, ...]; `conv_input_grad` the
output gradient and the kernel; `conv_weight_grad` the output gradient and the field.
A transposed convolution is a `conv_input_grad` in the forward phase.
"""

from popple.graph.attrs import integer, integers
from popple.graph.opdef import OpDef

# One number for all field dimensions, or one for each.
_ATTRS = (
    integers("stride", "Steps between positions of the kernel."),
    integers("padding", "Zeros before the field, and behind it too."),
    integers("dilation", "Steps between elements of the kernel."),
    integer("groups", "Groups of channels that are convolved apart."),
    integers(
        "padding_after",
        "Zeros behind the field where they are not as many as before it.",
        is_optional=True,
    ),
)

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
