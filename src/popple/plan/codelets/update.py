"""Optimiser codelets: one pass over weight, gradient and state.

Source: PopLibs popops estimators of ScaledAdd and aX + bY; updates with several
statements are sums of such passes, written out beside the tables.
"""

from __future__ import annotations

from popple.graph import DType
from popple.plan.codelets.rates import Rates, rates

PASSES: dict[str, tuple[tuple[str, Rates], ...]] = {
    "sgd_update": (("ScaledAdd", rates((3, 2), (3, 4))),),
    "accumulate": (("ScaledAdd", rates((3, 2), (3, 4))),),
    # v = m v + g, then w -= lr v
    "momentum_update": (
        ("AXPlusBY", rates((3, 2), (5, 4))),
        ("ScaledAdd", rates((3, 2), (3, 4))),
    ),
    # m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g g; u = m / (sqrt v + e); w -= lr u
    "adam_update": (
        ("AXPlusBY", rates((3, 2), (5, 4))),
        ("AXPlusBSquared", rates((4, 2), (6, 4))),  # assumed: one product more
        ("AdamUpdater", rates((23, 2), (47, 4))),  # sqrt 10, add 3, divide 10
        ("ScaledAdd", rates((3, 2), (5, 4))),
    ),
    "rmsprop_update": (
        ("AXPlusBSquared", rates((4, 2), (6, 4))),
        ("RmspropUpdater", rates((23, 2), (47, 4))),
        ("ScaledAdd", rates((3, 2), (5, 4))),
    ),
}
PASSES["lamb_update"] = PASSES["adam_update"]

GRADIENT_PASSES = {
    "sgd_update": 1,
    "accumulate": 1,
    "momentum_update": 1,
    "adam_update": 2,
    "rmsprop_update": 2,
    "lamb_update": 2,
}
"""Passes until the gradient is not read any more. The rest computes from the state: of
Adam only the two moments take it (graphcore/popart willow/src/patterns/
adamdecompose.cpp)."""

FLOPS = {
    "sgd_update": 2,
    "accumulate": 1,
    "momentum_update": 4,
    "adam_update": 12,
    "rmsprop_update": 8,
    "lamb_update": 18,
    "clear": 0,
}
"""Floating-point operations per element of the weight."""


def scaled_add_cycles(
    pass_rates: Rates, dtype: DType, num_elements: int, num_workers: int
) -> int:
    """ScaledAdd: 57 for the supervisor, 24 before a worker's loop."""
    loop = pass_rates.of(dtype).worker_cycles(num_elements, num_workers)
    return 57 + num_workers * (24 + loop)
