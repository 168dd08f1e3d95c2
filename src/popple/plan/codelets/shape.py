"""On-tile copies: what it costs to put received bytes in order.

Source: copy rates of PopLibs `getMemcpyBytesPerCycle` and of its convolution planner's
estimate of rearrangements; the fixed cost of a copy by six workers was measured on a
C600 by others.
"""

from __future__ import annotations

from popple.plan.codelets.rates import DATA_PATH_BYTES
from popple.units import ceil_div

COPY_LAUNCH_CYCLES = 288
"""Tile cycles to launch and join the workers of a copy."""


def copy_cycles(num_bytes: int, bytes_per_cycle: int) -> int:
    """Bytes moved in order at the chip's memcpy rate."""
    if num_bytes == 0:
        return 0
    return COPY_LAUNCH_CYCLES + ceil_div(num_bytes, bytes_per_cycle)


def shuffle_cycles(num_bytes: int, element_bytes: int) -> int:
    """Elements moved to new neighbours: one at a time, a quarter of it overhead."""
    if num_bytes == 0:
        return 0
    rate = 4 * min(DATA_PATH_BYTES, element_bytes)
    return COPY_LAUNCH_CYCLES + ceil_div(5 * num_bytes, rate)


def dynamic_slice_cycles(num_elements: int, num_lanes: int, num_workers: int) -> int:
    """DynamicSlice1D of one entry: 25 + W (39 + 24 + 2 per word of a worker)."""
    words = ceil_div(num_elements, num_workers * num_lanes)
    return 25 + num_workers * (39 + 24 + 2 * words)
