"""How many distinct elements of a smaller tensor a stretch of a larger one meets.

A tile holds a stretch of consecutive elements. Reduced, it gives as many partial
results as the stretch has distinct indices in the kept dimensions; in a broadcast it
needs as many elements of the small operand.
"""

from __future__ import annotations

from popple.units import ceil_div

Dims = tuple[int, ...]


def num_distinct(shape: Dims, kept: tuple[bool, ...], span: int) -> int:
    """Distinct indices over the kept dimensions among `span` neighbours.

    Example: 6 neighbours in a [4,3] tensor meet 2 rows and all 3 columns.
    """
    if span <= 0:
        return 0
    found, size = 1, 1
    for dim, is_kept in zip(reversed(shape), reversed(kept), strict=True):
        # The stretch lies within one index of all dimensions further out.
        if span <= size:
            break
        if is_kept:
            found *= min(dim, ceil_div(span, size))
        size *= dim
    return found


def operand_kept(operand: Dims, result: Dims) -> tuple[bool, ...]:
    """Which dimensions of the result a broadcast operand varies along."""
    missing = len(result) - len(operand)
    return (False,) * missing + tuple(dim != 1 for dim in operand)
