"""Plain forms of torch_cluster's and pyg-lib's operators on points in space.

Points of several examples lie one after the other; `ptr` holds where each example
begins, and ends with the number of points. A result with room for neighbours that do
not exist says -1 there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from popple.errors import CaptureError

_INFINITE_BITS = 0x7F800000
"""What infinity looks like as an integer; what is no number is larger."""


def knn(
    x: Tensor,
    y: Tensor,
    ptr_x: Tensor | None = None,
    ptr_y: Tensor | None = None,
    k: int = 1,
    cosine: bool = False,
    num_workers: int = 1,
) -> Tensor:
    """For each y its k nearest x: the numbers of y and of x, in two rows."""
    distance = squared_distances(y, x, cosine)
    if ptr_x is not None and ptr_y is not None:
        distance = apart(distance, example_of(ptr_y, y), example_of(ptr_x, x))
    return nearest_pairs(distance, k)


def radius(
    x: Tensor,
    y: Tensor,
    ptr_x: Tensor | None = None,
    ptr_y: Tensor | None = None,
    r: float = 1.0,
    max_num_neighbors: int = 32,
    num_workers: int = 1,
    ignore_same_index: bool = False,
) -> Tensor:
    """For each y the nearest x that are closer than r, as numbers in two rows."""
    distance = squared_distances(y, x)
    if ptr_x is not None and ptr_y is not None:
        distance = apart(distance, example_of(ptr_y, y), example_of(ptr_x, x))
    distance = distance.masked_fill(distance >= r * r, torch.inf)
    if ignore_same_index:
        distance = without_self(distance)
    return nearest_pairs(distance, min(max_num_neighbors, x.shape[0]))


def nearest(
    x: Tensor, y: Tensor, ptr_x: Tensor | None = None, ptr_y: Tensor | None = None
) -> Tensor:
    """For each x the number of the y nearest to it."""
    distance = squared_distances(x, y)
    if ptr_x is not None and ptr_y is not None:
        distance = apart(distance, example_of(ptr_x, x), example_of(ptr_y, y))
    return distance.argmin(dim=1)


def grid(
    pos: Tensor, size: Tensor, start: Tensor | None = None, end: Tensor | None = None
) -> Tensor:
    """The number of the cell of a regular grid that each point lies in."""
    start = pos.amin(dim=0) if start is None else start
    end = pos.amax(dim=0) if end is None else end
    num_cells = ((end - start) / size).long() + 1
    strides = torch.cat([num_cells.new_ones(1), num_cells.cumprod(0)[:-1]])
    return (((pos - start) / size).long() * strides).sum(dim=1)


def squared_distances(a: Tensor, b: Tensor, cosine: bool = False) -> Tensor:
    """Between each a and each b, in float32; of directions if `cosine`."""
    a, b = _as_rows(a), _as_rows(b)
    if cosine:
        a, b = normalize(a, dim=-1), normalize(b, dim=-1)
    return (a[:, None] - b[None]).square().sum(dim=-1)


def _as_rows(points: Tensor) -> Tensor:
    points = points.detach().float()
    return points.view(-1, 1) if points.dim() == 1 else points


def apart(distance: Tensor, example_a: Tensor, example_b: Tensor) -> Tensor:
    """Distances with those between points of different examples made infinite."""
    is_other = example_a.view(-1, 1) != example_b.view(1, -1)
    return distance.masked_fill(is_other, torch.inf)


def without_self(distance: Tensor) -> Tensor:
    """Distances of points among themselves, with those to themselves infinite."""
    is_same = torch.eye(*distance.shape, dtype=torch.bool, device=distance.device)
    return distance.masked_fill(is_same, torch.inf)


def example_of(ptr: Tensor, points: Tensor) -> Tensor:
    """The number of the example that each point belongs to."""
    places = torch.arange(points.shape[0], device=ptr.device)
    return torch.bucketize(places, ptr[1:].contiguous(), right=True)


def nearest_pairs(distance: Tensor, k: int) -> Tensor:
    """The k smallest of each row, as (row, column) numbers; -1 for infinite ones.

    Of equal distances the one in the first column comes first.
    """
    num_rows, num_columns = distance.shape
    if k > num_columns:
        distance = pad(distance, (0, k - num_columns), value=torch.inf)
    column = torch.arange(distance.shape[1], device=distance.device)
    # The bits of positive floats are ordered like the floats; the column breaks ties.
    keys = distance.contiguous().view(torch.int32).long() * 2**32 + column
    found = keys.topk(k, dim=1, largest=False).values
    row = torch.arange(num_rows, device=distance.device).view(-1, 1).expand_as(found)
    pairs = torch.stack([row.reshape(-1), (found % 2**32).reshape(-1)])
    is_missing = found // 2**32 >= _INFINITE_BITS
    return pairs.masked_fill(is_missing.reshape(-1), -1)


def _refuse_fps(*arguments: Any) -> Tensor:
    raise CaptureError(
        "fps samples a number of points that depends on the values of its arguments.",
        remedy="Use poptorch.fps, which takes the boundaries of examples as a list.",
    )


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "fps": _refuse_fps,
    "fps_ptr_list": _refuse_fps,
    "grid": grid,
    "knn": knn,
    "nearest": nearest,
    "radius": radius,
}

PYG_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "fps": _refuse_fps,
    "grid_cluster": grid,
    "knn": knn,
    "nearest": nearest,
    "radius": radius,
}
# What pyg-lib's operators are called with, and what they return.
PYG_SCHEMAS: Mapping[str, str] = {
    "fps": "(Tensor src, Tensor ptr, float ratio=0.5, bool random_start=True) "
    "-> Tensor",
    "grid_cluster": "(Tensor pos, Tensor size, Tensor? start=None, Tensor? end=None) "
    "-> Tensor",
    "knn": "(Tensor x, Tensor y, Tensor? ptr_x=None, Tensor? ptr_y=None, int k=1, "
    "bool cosine=False, int num_workers=1) -> Tensor",
    "nearest": "(Tensor x, Tensor y, Tensor? ptr_x=None, Tensor? ptr_y=None) -> Tensor",
    "radius": "(Tensor x, Tensor y, Tensor? ptr_x=None, Tensor? ptr_y=None, "
    "float r=1.0, int max_num_neighbors=32, int num_workers=1, "
    "bool ignore_same_index=False) -> Tensor",
}
