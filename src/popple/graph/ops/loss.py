"""Losses and their gradients: predictions first, then targets."""

from popple.graph.opdef import OpDef

_NAMES = {
    "nll_loss": "Negative log-likelihood of class indices",
    "mse_loss": "Squared difference",
    "l1_loss": "Absolute difference",
    "smooth_l1_loss": "Squared difference, absolute where large",
    "huber_loss": "Smooth L1 loss, scaled",
    "binary_cross_entropy": "Binary cross-entropy of probabilities",
    "kl_div_loss": "Kullback-Leibler divergence",
    "margin_loss": "Losses of the margin kind",
}

OPS = tuple(
    op
    for name, doc in _NAMES.items()
    for op in (
        OpDef(name, "loss", f"{doc}.", arity=(2, None), num_outputs=None),
        OpDef(
            f"{name}_grad",
            "loss",
            f"{doc}: gradient.",
            arity=(2, None),
            num_outputs=None,
        ),
    )
)
