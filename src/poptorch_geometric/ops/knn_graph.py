"""The graph that connects points with their nearest neighbours."""

from __future__ import annotations

from torch import Tensor

from .._foreign.points import nearest_pairs, without_self
from ._points import example_distances, in_flow

__all__ = ["knn_graph"]


def knn_graph(
    x: Tensor,
    k: int,
    batch: Tensor | None = None,
    loop: bool = False,
    flow: str = "source_to_target",
    cosine: bool = False,
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Tensor:
    """The edges from each point's k nearest neighbours in its example to the point.

    The point itself is one of them only with `loop`. -1 where there are fewer than k.
    """
    distance = example_distances(x, x, batch, batch, cosine)
    if not loop:
        distance = without_self(distance)
    return in_flow(nearest_pairs(distance, k), flow)
