"""The k nearest neighbours of points."""

from __future__ import annotations

from torch import Tensor

from .._foreign.points import nearest_pairs
from ._points import example_distances

__all__ = ["knn"]


def knn(
    x: Tensor,
    y: Tensor,
    k: int,
    batch_x: Tensor | None = None,
    batch_y: Tensor | None = None,
    cosine: bool = False,
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Tensor:
    """For each point y the k nearest points x of the same example.

    Returns the numbers of y and of x in two rows, k columns for each y; -1 where an
    example has fewer than k points x.
    """
    return nearest_pairs(example_distances(y, x, batch_y, batch_x, cosine), k)
