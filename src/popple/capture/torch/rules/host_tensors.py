"""Tensors that forward makes on the host: `torch.LongTensor([1, 0])`, `from_numpy`.

The functions of torch that make tensors (`torch.tensor`, `torch.zeros`) make them on
the IPU while a model is traced. A tensor made by its class lies on the host and must
be moved before it meets one that does not, by `to(x.device)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from popple.errors import CaptureError

__all__ = ["check_side", "note_side"]

# What a tensor with given values passes through when it is made. Functions of torch
# run out of our sight, so this is only seen of tensors that are made otherwise.
_MADE = {torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default}
# Functions that move values from the host.
_MOVES = {Tensor.to, Tensor.cuda, Tensor.type_as, Tensor.copy_, Tensor.__setitem__}
_FLAG = "_is_on_host"

_NAMES = {
    torch.float64: "Double",
    torch.float32: "Float",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}


def note_side(func: Callable[..., Any], result: Any) -> None:
    """Remember of a tensor that was just made or moved on which side it lies."""
    is_move = func in _MOVES
    if isinstance(result, Tensor) and (is_move or func in _MADE):
        setattr(result, _FLAG, not is_move)


def check_side(func: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Refuse an operator on tensors from both sides, unless it moves them."""
    if func in _MOVES:
        return
    leaves = pytree.tree_leaves((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    strays = [tensor for tensor in tensors if getattr(tensor, _FLAG, False)]
    if not strays or len(strays) == len(tensors):
        return
    stray = strays[0]
    dtype = _NAMES.get(stray.dtype, str(stray.dtype))
    raise CaptureError(
        "Expected an IPU tensor but got tensor(device=cpu, "
        f"shape={list(stray.shape)}, dtype={dtype}). Make it with torch.tensor, or "
        "move it to the device of the others."
    )
