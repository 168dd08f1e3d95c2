"""Operators on points in space: farthest point sampling and nearest neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._errors import Error
from .._tracing.trace import isRunningOnIpu
from .checks import check_tensor

__all__ = ["fps", "nearest"]

Batch = Sequence[int] | Tensor | None


def fps(
    src: Tensor, ptr: list[int], ratio: float = 0.5, random_start: bool = False
) -> Tensor:
    """Indices of points that lie far from each other, a share `ratio` of all.

    `src` holds the points of several examples one after the other; `ptr` says where
    each example begins and, last, how many points there are. Sampling an example
    begins at its first point or at a random one.
    """
    check_tensor(src, "The src of fps")
    if not isinstance(ptr, list) or len(ptr) < 2:
        raise Error("The ptr of fps must be a list of at least two ints.")
    if ptr[0] != 0 or ptr[-1] != src.shape[0] or ptr != sorted(ptr):
        raise Error(
            f"The ptr of fps must rise from 0 to the number of points, {src.shape[0]}, "
            f"but is {ptr}."
        )
    if not isinstance(ratio, float) or not 0 < ratio <= 1:
        raise Error(f"The ratio of fps must be a float from 0 to 1, not {ratio!r}.")
    if not isinstance(random_start, bool):
        raise Error("The random_start of fps must be a bool.")
    ends = torch.tensor(ptr, device=src.device)
    first = ends[:-1]
    if random_start:
        sizes = ends[1:] - first
        chance = torch.rand(len(ptr) - 1, device=src.device)
        first = first + torch.minimum((chance * sizes).long(), sizes - 1)
    return _as_indices(_sample(src, first, ptr, ratio))


@torch.library.custom_op(
    "poptorch::fps",
    mutates_args=(),
    schema="(Tensor src, Tensor first, int[] ptr, float ratio) -> Tensor",
)
def _sample(src: Tensor, first: Tensor, ptr: Sequence[int], ratio: float) -> Tensor:
    points = src.detach().float().reshape(src.shape[0], -1)
    samples = [
        _sample_one(
            points[begin:end], int(start) - begin, _num_samples(end - begin, ratio)
        )
        + begin
        for begin, end, start in zip(ptr, ptr[1:], first.tolist(), strict=False)
    ]
    return torch.cat(samples)


@_sample.register_fake
def _(src: Tensor, first: Tensor, ptr: Sequence[int], ratio: float) -> Tensor:
    counts = [_num_samples(end - begin, ratio) for begin, end in pairwise(ptr)]
    return src.new_empty(sum(counts), dtype=torch.int64)


def _num_samples(num_points: int, ratio: float) -> int:
    """In single precision, as the machine computes it: 0.1 of 30 points are 3."""
    return math.ceil(np.float32(num_points) * np.float32(ratio))


def _sample_one(points: Tensor, start: int, count: int) -> Tensor:
    """Indices of `count` points, each the farthest from those before it."""
    chosen = torch.empty(count, dtype=torch.int64, device=points.device)
    distance = points.new_full((points.shape[0],), math.inf)
    newest = torch.tensor(start, device=points.device)
    for index in range(count):
        chosen[index] = newest
        distance = torch.minimum(distance, (points - points[newest]).square().sum(1))
        newest = distance.argmax()
    return chosen


def nearest(
    x: Tensor, y: Tensor, batch_x: Batch = None, batch_y: Batch = None
) -> Tensor:
    """For each point of `x` the index of the nearest point of `y`.

    With batches, sorted numbers of the example each point belongs to, only points of
    the same example are considered. A batch that is left out is all zeros.
    """
    check_tensor(x, "The x of nearest")
    check_tensor(y, "The y of nearest")
    x, y = _as_rows(x, "x"), _as_rows(y, "y")
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            f"x and y of nearest have different numbers of coordinates: {x.shape[1]} "
            f"and {y.shape[1]}."
        )
    distance = torch.cdist(
        x.float(), y.float(), compute_mode="donot_use_mm_for_euclid_dist"
    )
    if _is_given(batch_x) or _is_given(batch_y):
        _check_batches(batch_x, batch_y)
        example_x = _as_examples(batch_x, x, "batch_x")
        example_y = _as_examples(batch_y, y, "batch_y")
        is_other = example_x.unsqueeze(1) != example_y.unsqueeze(0)
        distance = distance.masked_fill(is_other, math.inf)
    return _as_indices(distance.argmin(dim=1))


def _as_indices(indices: Tensor) -> Tensor:
    """Models return 32-bit integers; inside them PyTorch wants 64 bits."""
    return indices if isRunningOnIpu() else indices.to(torch.int32)


def _as_rows(points: Tensor, name: str) -> Tensor:
    if points.dim() > 2:
        raise ValueError(f"{name} of nearest must have at most two dimensions.")
    return points.reshape(-1, 1) if points.dim() == 1 else points


def _is_given(batch: Any) -> bool:
    return isinstance(batch, Tensor) or bool(batch)


def _check_batches(batch_x: Batch, batch_y: Batch) -> None:
    """What can be seen before the values of tensors are known."""
    if isinstance(batch_x, Tensor) or isinstance(batch_y, Tensor):
        return
    found: list[list[int]] = []
    for name, batch in (("batch_x", batch_x), ("batch_y", batch_y)):
        numbers = list(batch or [0])
        if numbers != sorted(numbers):
            raise ValueError(f"{name} of nearest is not sorted.")
        found.append([number for number, _ in groupby(numbers)])
    if found[0] != found[1]:
        raise ValueError(
            "batch_x and batch_y of nearest name different examples: "
            f"{found[0]} and {found[1]}."
        )


def _as_examples(batch: Batch, points: Tensor, name: str) -> Tensor:
    """The example of each point, as a tensor."""
    if batch is None or not _is_given(batch):
        return torch.zeros(points.shape[0], dtype=torch.int64, device=points.device)
    numbers = batch if isinstance(batch, Tensor) else torch.tensor(list(batch))
    if numbers.dim() != 1 or numbers.shape[0] != points.shape[0]:
        raise ValueError(
            f"{name} of nearest must have a number for each of {points.shape[0]} "
            f"points, not the shape {tuple(numbers.shape)}."
        )
    return numbers.to(points.device)
