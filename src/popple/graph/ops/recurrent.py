"""Recurrent layers over whole sequences, one direction and one layer at a time."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef(
        "recurrent",
        "recurrent",
        "Input [T,B,I], `num_states` states [B,H], matrices of input and state or one "
        "of both, rows of biases: outputs [T,B,H], last states and, for a gradient, "
        "what it needs; "
        "`cell` is lstm, gru or gru_reset_before.",
        arity=(4, None),
        num_outputs=None,
        attrs=("cell", "num_states"),
    ),
    OpDef(
        "recurrent_grad",
        "recurrent",
        "Gradients of outputs and last states, what was kept, then the layer's inputs: "
        "the gradient of each of these inputs.",
        arity=(7, None),
        num_outputs=None,
        attrs=("cell", "num_states"),
    ),
)
