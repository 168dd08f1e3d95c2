"""Accumulate and scale the gradients of several micro-batches for one update."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Gradients = Sequence[Tensor | None]
"""One for each trained weight; None where the loss does not depend on it."""


def start_total(gradients: Gradients, dtype: torch.dtype | None) -> list[Tensor | None]:
    """Copies to add to, in `dtype` or their own type.

    A gradient may be a view, or one element repeated.
    """
    return [
        g
        if g is None
        else torch.empty_like(
            g, dtype=dtype, memory_format=torch.contiguous_format
        ).copy_(g)
        for g in gradients
    ]


def restart_total(total: Gradients, gradients: Gradients) -> None:
    """Overwrite a total with the gradients that come first."""
    sums = [t for t in total if t is not None]
    if sums:
        torch._foreach_copy_(sums, [g for g in gradients if g is not None])


def add_to_total(
    total: Gradients, gradients: Gradients, *, num_before: int, is_running_mean: bool
) -> None:
    """Add to a sum of `num_before` gradients, or keep up their mean."""
    sums = [t for t in total if t is not None]
    if not sums:
        return
    added = [g for g in gradients if g is not None]
    if is_running_mean:
        share = 1 / (num_before + 1)
        # A running mean stays as small as one gradient, which float16 accumulators
        # need.
        torch._foreach_mul_(sums, 1 - share)
        torch._foreach_add_(sums, added, alpha=share)
    else:
        torch._foreach_add_(sums, added)


def add_in_pairs(
    partials: list[list[Tensor | None]], gradients: Gradients, position: int
) -> None:
    """Take the gradients of replica `position`; sums of pairs, of fours... are kept.

    Replicas are added as a tree: the sum over some processes is a branch of it, so the
    result has the same bits however replicas are spread over processes.
    """
    # As carries when counting in binary: after replica 3 there is one sum of four.
    num_merges = _trailing_zeros(position + 1)
    if num_merges == 0:
        partials.append(start_total(gradients, None))
        return
    _add(partials[-1], gradients)
    for _ in range(num_merges - 1):
        _add(partials[-2], partials.pop())


def join_pairs(partials: list[list[Tensor | None]]) -> list[Tensor | None]:
    """The sum of all replicas that `add_in_pairs` has taken."""
    while len(partials) > 1:
        _add(partials[-2], partials.pop())
    return partials.pop()


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1


def _add(total: Gradients, gradients: Gradients) -> None:
    add_to_total(total, gradients, num_before=1, is_running_mean=False)


def scale_gradients(
    gradients: list[Tensor], factor: float, *, is_owned: bool
) -> list[Tensor]:
    """The gradients times a factor, in float32; overwrites those that are owned."""
    if factor == 1:
        return gradients
    wide = [g.float() for g in gradients]
    if is_owned:
        torch._foreach_mul_(wide, factor)
        return wide
    return list(torch._foreach_mul(wide, factor))
