"""Recurrent layers over whole sequences, one direction and one layer at a time."""

from popple.graph.attrs import integer, text
from popple.graph.opdef import OpDef

_ATTRS = (
    text("cell", "What a step computes.", choices=("lstm", "gru", "gru_reset_before")),
    integer("num_states", "States that go from step to step."),
)

OPS = (
    OpDef(
        "recurrent",
        "recurrent",
        "Input [T,B,I], `num_states` states [B,H], matrices of input and state or one "
        "of both, rows of biases: outputs [T,B,H], last states and, for a gradient, "
        "what it needs.",
        arity=(4, None),
        num_outputs=None,
        attrs=_ATTRS,
    ),
    OpDef(
        "recurrent_grad",
        "recurrent",
        "Gradients of outputs and last states, what was kept, then the layer's inputs: "
        "the gradient of each of these inputs.",
        arity=(7, None),
        num_outputs=None,
        attrs=_ATTRS,
    ),
)
