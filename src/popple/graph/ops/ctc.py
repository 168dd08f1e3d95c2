"""Connectionist temporal classification."""

from popple.graph.attrs import integer
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
        "Losses of log probabilities [T,B,C] for targets, and their gradient.",
        arity=(2, None),
        num_outputs=2,
        attrs=(
            integer(
                "num_labels",
                "Labels of each row; as many as the last dimension of the targets has "
                "if it is left out.",
                is_optional=True,
            ),
        ),
        check=_gradient_is_whole,
    ),
)
