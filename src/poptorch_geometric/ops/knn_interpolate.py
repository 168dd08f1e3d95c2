"""Features of points from those of their nearest neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from ._points import example_distances

__all__ = ["knn_interpolate"]

# Of points in the same place one has all the weight, but not an infinite one.
_LEAST_DISTANCE = 1e-16


def knn_interpolate(
    x: Tensor,
    pos_x: Tensor,
    pos_y: Tensor,
    batch_x: Tensor | None = None,
    batch_y: Tensor | None = None,
    k: int = 3,
    num_workers: int = 1,
) -> Tensor:
    """For each position y the mean of the features of the k nearest positions x.

    Features weigh with the inverse of the squared distance; if an example has fewer
    than k positions x, with all of them.
    """
    distance = example_distances(pos_y, pos_x, batch_y, batch_x)
    nearest, index = distance.topk(min(k, pos_x.shape[0]), dim=1, largest=False)
    weight = torch.where(
        nearest.isinf(), 0.0, 1.0 / nearest.clamp(min=_LEAST_DISTANCE)
    ).to(x.dtype)
    total = (x[index] * weight.unsqueeze(-1)).sum(dim=1)
    return total / weight.sum(dim=1, keepdim=True)
