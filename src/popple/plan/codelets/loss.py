"""Losses: worker cycles per element before the sum over the batch.

Source: PopLibs popnn loss codelets for cross-entropy (9 per float or per 2 halves);
the others are assumed, as sums of the element-wise operations they are made of.
"""

from __future__ import annotations

from popple.graph import DType
from popple.plan.codelets.rates import Rates, rates

TRANSFORM: dict[str, Rates] = {
    "nll_loss": rates((9, 1), (9, 2)),
    "mse_loss": rates((5, 2), (5, 4)),
    "l1_loss": rates((6, 2), (6, 4)),
    "smooth_l1_loss": rates((16, 2), (16, 4)),
    "huber_loss": rates((16, 2), (16, 4)),
    "binary_cross_entropy": rates((33, 2), (20, 4)),
    "kl_div_loss": rates((18, 2), (10, 4)),
    "margin_loss": rates((9, 2), (9, 4)),
}


def loss_cycles(kind: str, dtype: DType, num_elements: int, num_workers: int) -> int:
    """The transform of one tile's elements; a gradient costs what its loss costs."""
    rate = TRANSFORM[kind.removesuffix("_grad")].of(dtype)
    return 9 + num_workers * (20 + rate.worker_cycles(num_elements, num_workers))
