"""Copies of large tensors that are made when somebody writes.

Loading a large model onto the CPU would be all copying, and an inference model never
writes to its weights. PyTorch's copy-on-write storage makes the copy when either side,
the host's module or the device, is written through PyTorch. The one thing PyTorch
cannot do with such storage is to let it grow (`Tensor.resize_`).
"""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import Tensor

LARGE_BYTES = 2**20
"""From here on a copy takes longer than to ask whether it can wait."""

_OWN_USES = 3
"""Uses of memory that only a module has: its parameter, the plain tensor that shares
it, and the storage object that is asked."""


def copy_of(tensor: Tensor) -> Tensor:
    """The tensor in memory of its own, at once or by the time that matters."""
    if _can_wait(tensor):
        # Memory that PyTorch has not allocated itself (of a NumPy array, a file, or
        # shared between processes) may be written behind its back, and it refuses.
        with suppress(RuntimeError):
            return torch._lazy_clone(tensor)
    return tensor.clone()


def _can_wait(tensor: Tensor) -> bool:
    """Whether nobody else can write to the tensor's memory, as a NumPy array could."""
    storage = tensor.untyped_storage()
    size = tensor.numel() * tensor.itemsize
    if tensor.device.type != "cpu" or size < LARGE_BYTES or storage.nbytes() != size:
        return False
    return torch._C._storage_Use_Count(storage._cdata) <= _OWN_USES
