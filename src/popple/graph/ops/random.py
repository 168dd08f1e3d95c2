"""Random numbers from the tiles' generators."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef("uniform", "random", "Uniform numbers.", arity=(0, 1)),
    OpDef("normal", "random", "Normal numbers.", arity=(0, 1)),
    OpDef("bernoulli", "random", "1 with a probability.", arity=(0, 2)),
    OpDef("random_integers", "random", "Uniform integers.", arity=(0, 1)),
    OpDef("permutation", "random", "Shuffled indices.", arity=(0, 0)),
    OpDef(
        "dropout",
        "random",
        "Elements zeroed by chance, and the mask if it is asked for.",
        num_outputs=None,
    ),
)
