"""float16 partial sums: matrix products and convolutions as the matrix unit adds them.

The machine's matrix unit takes sixteen numbers of the summed dimension at a time and
adds what they give to a partial sum. Here the sums of sixteen are float32 and the
partial sum is rounded after each addition. Convolutions are cut along their channels,
gradients of kernels along the batch; the elements of a kernel are not cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Round = Callable[[Tensor], Tensor]
Operator = Callable[..., Any]

_DEPTH = 16
"""Numbers of the summed dimension that the matrix unit takes at a time."""

aten = torch.ops.aten


def sum_parts(parts: Iterator[Tensor], rounded: Round) -> Tensor:
    """The sum of float32 tensors, held in float16 in between; float32."""
    total = rounded(next(parts)).float()
    for part in parts:
        total = rounded(total + part).float()
    return total


def _ranges(size: int, depth: int = _DEPTH) -> Iterator[tuple[int, int]]:
    """(start, length) of pieces of at most `depth`; one empty piece of nothing."""
    for start in range(0, max(size, 1), depth):
        yield start, min(depth, size - start)


def _matmul(rounded: Round) -> Operator:
    def matmul(a: Tensor, b: Tensor) -> Tensor:
        parts = (
            torch.matmul(a.narrow(-1, *piece), b.narrow(-2, *piece))
            for piece in _ranges(a.shape[-1])
        )
        return sum_parts(parts, rounded)

    return matmul


def _add_matmul(rounded: Round) -> Operator:
    matmul = _matmul(rounded)

    def add_matmul(
        c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        return beta * c + alpha * matmul(a, b)

    return add_matmul


def _grouped(x: Tensor, dim: int, groups: int, piece: tuple[int, int]) -> Tensor:
    """The same piece of each group of channels along `dim`."""
    cut = x.unflatten(dim, (groups, -1)).narrow(dim + 1, *piece)
    return cut.flatten(dim, dim + 1)


def _convolution(rounded: Round) -> Operator:
    def convolution(
        x: Tensor, kernel: Tensor, bias: Tensor | None, *settings: Any
    ) -> Tensor:
        *_, is_transposed, _, groups = settings
        parts = (
            aten.convolution(
                _grouped(x, 1, groups, piece),
                _grouped(kernel, 0, groups, piece)
                if is_transposed
                else kernel.narrow(1, *piece),
                None,
                *settings,
            )
            for piece in _ranges(x.shape[1] // groups)
        )
        total = sum_parts(parts, rounded)
        if bias is None:
            return total
        return total + bias.view(-1, *(1,) * (x.dim() - 2))

    return convolution


def _convolution_backward(rounded: Round) -> Operator:
    def backward(
        gradient: Tensor, x: Tensor, kernel: Tensor, sizes: Any, *settings: Any
    ) -> list[Tensor | None]:
        *settings_alone, mask = settings
        *_, is_transposed, _, groups = settings_alone

        def part(g: Tensor, x: Tensor, k: Tensor, index: int) -> Tensor:
            chosen = [index == place for place in range(3)]
            found = aten.convolution_backward(g, x, k, sizes, *settings_alone, chosen)
            return found[index]

        channel_dim = 1 if is_transposed else 0
        results: list[Tensor | None] = [None, None, None]
        # Channels of a gradient are summed within a group: cut across groups they would
        # need a kernel of their own for each. Grouped convolutions keep float32 sums.
        if mask[0] and groups == 1:
            pieces = _ranges(gradient.shape[1])
            parts = (
                part(gradient.narrow(1, *p), x, kernel.narrow(channel_dim, *p), 0)
                for p in pieces
            )
            results[0] = sum_parts(parts, rounded)
        elif mask[0]:
            results[0] = part(gradient, x, kernel, 0)
        if mask[1]:
            # The gradient of a kernel is summed over batch and field; one sample at a
            # time is the nearest cut that torch's operator allows.
            samples = zip(gradient.split(1), x.split(1), strict=True)
            results[1] = sum_parts((part(g, s, kernel, 1) for g, s in samples), rounded)
        if mask[2]:
            results[2] = gradient.sum((0, *range(2, gradient.dim())))
        return results

    return backward


PARTIAL_SUMS: dict[Any, Callable[[Round], Operator]] = {
    aten.mm.default: _matmul,
    aten.bmm.default: _matmul,
    aten.addmm.default: _add_matmul,
    aten.baddbmm.default: _add_matmul,
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
}
"""By operator: the same, given how to round, with partial sums in float16."""
