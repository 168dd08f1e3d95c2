"""Call a function on real zeros in the middle of a trace, without tracing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from popple.capture.torch.swapped import swapped


def call_outside(
    function: Callable[..., Any],
    shapes: Sequence[Tensor],
    module: nn.Module,
    state: Mapping[str, Tensor],
) -> Any:
    """What a function returns for zeros of the shapes and types of these tensors.

    Nothing of it is traced. The parameters and buffers of `module`, which are the
    trace's own at that time, are those of `state` meanwhile.
    """
    given = [(tuple(tensor.shape), tensor.dtype) for tensor in shapes]
    # Modes of the trace would record the call, or refuse what forward may not do.
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        zeros = [torch.zeros(shape, dtype=dtype) for shape, dtype in given]
        with swapped(module, state):
            return function(*zeros)
