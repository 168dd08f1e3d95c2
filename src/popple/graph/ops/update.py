"""Optimiser updates: weight, gradient, then state; results overwrite their inputs."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef(
        "sgd_update",
        "update",
        "w -= lr g, with weight decay.",
        arity=(2, 2),
    ),
    OpDef(
        "momentum_update",
        "update",
        "SGD with a velocity.",
        arity=(3, 3),
        num_outputs=2,
    ),
    OpDef(
        "adam_update",
        "update",
        "Adam and AdamW: two moments.",
        arity=(4, 4),
        num_outputs=3,
    ),
    OpDef(
        "rmsprop_update",
        "update",
        "RMSprop, with optional momentum and mean.",
        arity=(3, 5),
        num_outputs=None,
    ),
    OpDef(
        "lamb_update",
        "update",
        "LAMB: Adam scaled by the ratio of two norms.",
        arity=(4, 4),
        num_outputs=3,
    ),
    OpDef(
        "accumulate",
        "update",
        "Add a gradient to its accumulator, laid out as a weight read with it.",
        arity=(2, 3),
    ),
    OpDef("clear", "update", "Zero an accumulator."),
)
