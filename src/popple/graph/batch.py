"""How many samples a micro-batch has, told by the shapes of what is fed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def batch_of(shapes: Sequence[Sequence[int]]) -> int:
    """The first dimension that most inputs have; at least 1.

    States and tables are inputs too, so it need not be the largest one. Where time
    comes first in some, the batch is what more of them have anywhere.
    """
    sizes = Counter(shape[0] for shape in shapes if shape)
    spread = {size: sum(size in shape for shape in shapes) for size in sizes}
    likely = max(sizes, key=lambda size: (sizes[size], spread[size]), default=1)
    return max(likely, 1)
