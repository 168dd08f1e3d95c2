"""Normalisations: statistics of the first input, then scale and shift.

Forward ops give the result, the mean and the inverse standard deviation; gradients give
those of the input, the scale and the shift.
"""

from popple.graph.attrs import integer
from popple.graph.opdef import OpDef

_NUM_STATISTICS = integer("num_statistics", "Means, and variances, that are computed.")
_DOCS = {
    "batch_norm": "Normalise each channel over the batch, updating running statistics.",
    "batch_norm_inference": "Normalise each channel with running statistics.",
    "layer_norm": "Normalise the trailing dimensions of each sample.",
    "group_norm": "Normalise groups of channels of each sample.",
    "batch_norm_grad": "Gradients of batch_norm.",
    "layer_norm_grad": "Gradients of layer_norm.",
    "group_norm_grad": "Gradients of group_norm.",
}

OPS = tuple(
    OpDef(
        name,
        "norm",
        doc,
        arity=(1, None),
        num_outputs=None,
        attrs=(_NUM_STATISTICS,),
    )
    for name, doc in _DOCS.items()
)
