"""Plain forms of torch_scatter's operators: min, max, mul and reductions of segments.

Their results have the size that `dim_size` or `out` says: while a step is traced there
are no values to learn it from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from popple.errors import CaptureError

Extremes = tuple[Tensor, Tensor]
"""The extreme values and, for each, where along the dimension it was found."""


def scatter_max(
    src: Tensor,
    index: Tensor,
    dim: int,
    out: Tensor | None = None,
    dim_size: int | None = None,
) -> Extremes:
    """The largest values, and the first place each was found at."""
    return _scatter_extreme("max", src, index, dim, out, dim_size)


def scatter_min(
    src: Tensor,
    index: Tensor,
    dim: int,
    out: Tensor | None = None,
    dim_size: int | None = None,
) -> Extremes:
    """The smallest values, and the first place each was found at."""
    return _scatter_extreme("min", src, index, dim, out, dim_size)


def scatter_mul(
    src: Tensor,
    index: Tensor,
    dim: int,
    out: Tensor | None = None,
    dim_size: int | None = None,
) -> Tensor:
    """The products of what is scattered to the same place, times what `out` held."""
    dim %= src.dim()
    size = _result_size("mul", src, dim, out, dim_size)
    start = src.new_ones(size) if out is None else out
    product = start.scatter_reduce(dim, _expanded(index, src, dim), src, "prod")
    return product if out is None else out.copy_(product)


def _scatter_extreme(
    reduce: str,
    src: Tensor,
    index: Tensor,
    dim: int,
    out: Tensor | None,
    dim_size: int | None,
) -> Extremes:
    """Places are one past the last where nothing beats what `out` holds.

    Without `out` that is where nothing is scattered to; the value there is 0. The
    gradient of a value goes to its place alone, also if others are as extreme.
    """
    dim %= src.dim()
    size = _result_size(reduce, src, dim, out, dim_size)
    index = _expanded(index, src, dim)
    start = src.new_zeros(size) if out is None else out.detach()
    is_best = _is_extreme(reduce, src.detach(), index, dim, start, out is not None)
    place = _first_places(is_best, index, dim, size)
    none = src.new_zeros([1 if d == dim else n for d, n in enumerate(src.shape)])
    found = torch.cat([src, none], dim).gather(dim, place)
    if out is None:
        return found, place
    return out.copy_(torch.where(place < src.shape[dim], found, out)), place


def _is_extreme(
    reduce: str, src: Tensor, index: Tensor, dim: int, start: Tensor, is_rival: bool
) -> Tensor:
    """Which elements are the most extreme of their place; `start` may be a rival."""
    best = start.scatter_reduce(dim, index, src, f"a{reduce}", include_self=is_rival)
    is_best = src == best.gather(dim, index)
    return is_best & (src != start.gather(dim, index)) if is_rival else is_best


def _first_places(is_best: Tensor, index: Tensor, dim: int, size: list[int]) -> Tensor:
    length = is_best.shape[dim]
    places = _along(dim, torch.arange(length, device=index.device), is_best)
    none = index.new_full(size, length, dtype=torch.long)
    candidates = torch.where(is_best, places, length)
    return none.scatter_reduce(dim, index, candidates, "amin")


def _result_size(
    reduce: str, src: Tensor, dim: int, out: Tensor | None, dim_size: int | None
) -> list[int]:
    if out is not None:
        return list(out.shape)
    if dim_size is None:
        raise CaptureError(
            f"torch_scatter reduces ({reduce}) without dim_size, so the size of the "
            "result would depend on the values of the index.",
            remedy="Pass dim_size (or out): shapes must be known before values are.",
        )
    return [dim_size if d == dim else n for d, n in enumerate(src.shape)]


def _expanded(index: Tensor, src: Tensor, dim: int) -> Tensor:
    """`index` in the shape of `src`; a vector runs along `dim`."""
    if index.dim() == 1:
        return _along(dim, index, src)
    trailing = (1,) * (src.dim() - index.dim())
    return index.reshape(*index.shape, *trailing).expand_as(src)


def _along(dim: int, vector: Tensor, like: Tensor) -> Tensor:
    shape = [-1 if d == dim else 1 for d in range(like.dim())]
    return vector.view(shape).expand_as(like)


def _sum_segments(src: Tensor, index: Tensor, dim: int, num_segments: int) -> Tensor:
    size = _result_size("sum", src, dim, None, num_segments)
    return src.new_zeros(size).scatter_add(dim, _expanded(index, src, dim), src)


def _mean_segments(src: Tensor, index: Tensor, dim: int, num_segments: int) -> Tensor:
    count = _sum_segments(torch.ones_like(src), index, dim, num_segments)
    return _sum_segments(src, index, dim, num_segments) / count.clamp(min=1)


def _max_segments(src: Tensor, index: Tensor, dim: int, num_segments: int) -> Extremes:
    return scatter_max(src, index, dim, None, num_segments)


def _min_segments(src: Tensor, index: Tensor, dim: int, num_segments: int) -> Extremes:
    return scatter_min(src, index, dim, None, num_segments)


def _refuse_out(out: Tensor | None) -> None:
    if out is not None:
        raise CaptureError(
            "torch_scatter's segment functions cannot write to `out` in a model.",
            remedy="Leave `out` away and use the result.",
        )


def _by_index(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Reduce the segments that a sorted index numbers, along its last dimension."""

    def segment_coo(
        src: Tensor, index: Tensor, out: Tensor | None, dim_size: int | None
    ) -> Any:
        _refuse_out(out)
        dim = index.dim() - 1
        num_segments = _result_size("segments", src, dim, None, dim_size)[dim]
        return reduce(src, index, dim, num_segments)

    return segment_coo


def _by_pointer(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Reduce the segments between neighbours of `indptr`, along its last dimension."""

    def segment_csr(src: Tensor, indptr: Tensor, out: Tensor | None) -> Any:
        _refuse_out(out)
        dim = indptr.dim() - 1
        ends = indptr[..., 1:].contiguous()
        places = torch.arange(src.shape[dim], device=src.device)
        places = places.expand(*ends.shape[:-1], -1).contiguous()
        index = torch.searchsorted(ends, places, right=True)
        return reduce(src, index, dim, ends.shape[-1])

    return segment_csr


_SEGMENTS: Mapping[str, Callable[..., Any]] = {
    "sum": _sum_segments,
    "mean": _mean_segments,
    "min": _min_segments,
    "max": _max_segments,
}

OPERATORS: Mapping[str, Callable[..., Any]] = {
    "scatter_min": scatter_min,
    "scatter_max": scatter_max,
    "scatter_mul": scatter_mul,
    **{f"segment_{name}_coo": _by_index(f) for name, f in _SEGMENTS.items()},
    **{f"segment_{name}_csr": _by_pointer(f) for name, f in _SEGMENTS.items()},
}
