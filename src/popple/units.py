"""Arithmetic and formatting of the units that end names: bytes, cycles, seconds."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


def ceil_div(numerator: int, denominator: int) -> int:
    """Smallest integer not below numerator / denominator."""
    return -(-numerator // denominator)


def round_up(number: int, multiple: int) -> int:
    """Smallest multiple of `multiple` not below `number`."""
    return ceil_div(number, multiple) * multiple


def render_bytes(num_bytes: float) -> str:
    """Bytes with a binary prefix: `623.5 KiB`."""
    for limit, suffix in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(num_bytes) >= limit:
            return f"{num_bytes / limit:.1f} {suffix}"
    return f"{num_bytes:.0f} B"


def render_count(count: float) -> str:
    """A count with thousands separators: `20,869,010`."""
    return f"{count:,.0f}"


def render_seconds(seconds: float) -> str:
    """Seconds in the unit that reads best: `1.35 ms`."""
    for limit, suffix in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(seconds) >= limit:
            return f"{seconds / limit:.3g} {suffix}"
    return f"{seconds * 1e9:.3g} ns"


def render_joules(joules: float) -> str:
    """Joules in the unit that reads best: `4.2 mJ`."""
    for limit, suffix in ((1e3, "kJ"), (1.0, "J"), (1e-3, "mJ")):
        if abs(joules) >= limit:
            return f"{joules / limit:.3g} {suffix}"
    return f"{joules * 1e6:.3g} uJ"


def render_percent(fraction: float) -> str:
    """A fraction as per cent: `12.5 %`."""
    return f"{100 * fraction:.1f} %"
