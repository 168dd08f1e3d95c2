"""Index types: classes and indices of every integer type, as the device takes them.

The device has 32-bit integers and none of 64 bits, so its programs pass classes and
indices as they come. PyTorch's kernels want int64 for most: what is narrower is
widened on its way into them, which the device does not notice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import Tensor

__all__ = ["INDEXED", "with_wide_indices"]

# Bytes are masks where something is indexed by brackets.
_NARROW = frozenset({torch.int32, torch.int16, torch.int8, torch.uint8})
_BRACKETS = frozenset({torch.int16, torch.int8})

_BY_POSITION = (
    "gather",
    "index_add",
    "index_add_",
    "index_copy",
    "index_copy_",
    "index_fill",
    "index_fill_",
    "index_reduce",
    "index_reduce_",
    "index_select",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "scatter_reduce",
    "scatter_reduce_",
)
_LOSSES = (F.cross_entropy, F.nll_loss, F.multi_margin_loss, F.multilabel_margin_loss)


def _both(name: str) -> list[Callable[..., Any]]:
    """The function of torch and the method of tensors that have this name."""
    owners = (torch, Tensor)
    return [getattr(owner, name) for owner in owners if hasattr(owner, name)]


INDEXED: dict[Callable[..., Any], tuple[tuple[int, str], ...]] = {
    **{func: ((2, "index"),) for name in _BY_POSITION for func in _both(name)},
    **dict.fromkeys(_LOSSES, ((1, "target"),)),
    **dict.fromkeys(_both("take"), ((1, "index"),)),
    **dict.fromkeys(_both("take_along_dim"), ((1, "indices"),)),
    F.embedding: ((0, "input"),),
    torch.embedding: ((1, "indices"),),
    F.embedding_bag: ((0, "input"), (2, "offsets")),
    F.one_hot: ((0, "input"),),
    **dict.fromkeys(_both("index_put"), ((1, "indices"),)),
    Tensor.index_put_: ((1, "indices"),),
    Tensor.__getitem__: ((1, ""),),
    Tensor.__setitem__: ((1, ""),),
}
"""Functions with indices among their arguments: where, and under which name."""

_IN_BRACKETS = frozenset(
    {Tensor.__getitem__, Tensor.__setitem__, Tensor.index_put_, *_both("index_put")}
)


def with_wide_indices(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with their indices as int64, if they were narrower."""
    narrow = _BRACKETS if func in _IN_BRACKETS else _NARROW

    def widen(leaf: Any) -> Any:
        is_narrow = isinstance(leaf, Tensor) and leaf.dtype in narrow
        return leaf.to(torch.int64) if is_narrow else leaf

    positional, named = list(args), dict(kwargs)
    for position, name in INDEXED[func]:
        if position < len(positional):
            positional[position] = pytree.tree_map(widen, positional[position])
        elif name in named:
            named[name] = pytree.tree_map(widen, named[name])
    return tuple(positional), named
