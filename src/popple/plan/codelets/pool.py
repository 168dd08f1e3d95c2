"""Pooling codelets. Source: PopLibs popnn performance estimation."""

from __future__ import annotations

from popple.plan.codelets.rates import Rate
from popple.units import ceil_div

CHANNEL_GROUP = 16
"""Channels that lie together; assumed, the grouping convolutions prefer."""


def pool_cycles(num_outputs: int, window: int, num_lanes: int, num_workers: int) -> int:
    """13 + W (30 + 20 per field element + words (7 + 3 per window element))."""
    share = ceil_div(num_outputs, num_workers)
    items = ceil_div(share, CHANNEL_GROUP)
    words = ceil_div(share, num_lanes)
    return 13 + num_workers * (30 + 20 * items + words * (7 + 3 * window))


def pool_grad_cycles(
    num_inputs: int, num_windows: int, num_lanes: int, num_workers: int
) -> int:
    """5 cycles per word of the field for each window that covers it."""
    rate = Rate(5 * max(1, num_windows), num_lanes)
    return 13 + num_workers * (30 + rate.worker_cycles(num_inputs, num_workers))
