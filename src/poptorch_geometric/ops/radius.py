"""Neighbours of points within a distance."""

from __future__ import annotations

import torch
from torch import Tensor

from .._foreign.points import nearest_pairs, without_self
from ._points import example_distances, in_flow

__all__ = ["radius", "radius_graph"]


def radius(
    x: Tensor,
    y: Tensor,
    r: float,
    batch_x: Tensor | None = None,
    batch_y: Tensor | None = None,
    max_num_neighbors: int = 32,
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Tensor:
    """For each point y the points x of the same example that are closer than r.

    Returns the numbers of y and of x in two rows, `max_num_neighbors` columns for
    each y; the nearest if there are more, -1 if there are fewer.
    """
    distance = example_distances(y, x, batch_y, batch_x)
    return _within(distance, r, min(max_num_neighbors, x.shape[0]))


def radius_graph(
    x: Tensor,
    r: float,
    batch: Tensor | None = None,
    loop: bool = False,
    max_num_neighbors: int = 32,
    flow: str = "source_to_target",
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Tensor:
    """The edges from each point's neighbours closer than r to the point.

    The point itself is one of them only with `loop`. -1 where there are fewer than
    `max_num_neighbors`.
    """
    distance = example_distances(x, x, batch, batch)
    if not loop:
        distance = without_self(distance)
    return in_flow(_within(distance, r, min(max_num_neighbors, x.shape[0])), flow)


def _within(distance: Tensor, r: float, k: int) -> Tensor:
    return nearest_pairs(distance.masked_fill(distance >= r * r, torch.inf), k)
