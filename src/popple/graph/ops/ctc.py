"""Connectionist temporal classification."""

from popple.graph.opdef import OpDef
from popple.graph.signature import Signature


def _gradient_is_whole(signature: Signature) -> str:
    chances, gradient = signature.inputs[0], signature.outputs[1]
    if gradient.shape != chances.shape:
        return f"gives a gradient like {chances}, not {gradient}"
    return ""


OPS = (
    OpDef(
        "ctc_loss",
        "ctc",
        "Losses of log probabilities [T,B,C] for targets, and their gradient; "
        "`num_labels` of each row are by default the last dimension of the targets.",
        arity=(2, None),
        num_outputs=2,
        check=_gradient_is_whole,
    ),
)
