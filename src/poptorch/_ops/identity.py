"""Functions that return what they are given and tell the model of costs about it.

While a model is traced each leaves notes in the graph, on the op that made the tensor.
On the CPU they return their argument.
"""

from __future__ import annotations

from typing import Any

import torch

from popple.graph import NO_NOTES, Notes, SerialSplit, SplitDimension

from .._errors import Error, check
from .._tracing.trace import isRunningOnIpu
from ..enums import MatMulSerializationMode
from .checks import check_tensor

__all__ = [
    "nop",
    "recomputationCheckpoint",
    "serializedMatMul",
    "set_available_memory",
]


def _noted(tensor: torch.Tensor, notes: Notes) -> torch.Tensor:
    """The same tensor, with notes on the op that made it."""
    if not isRunningOnIpu():
        return tensor
    from popple.capture.torch import note

    return note(tensor, notes)


def nop(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor."""
    check_tensor(tensor, "The argument of nop")
    return _noted(tensor, NO_NOTES)


def set_available_memory(
    tensor: torch.Tensor, available_memory_proportion: float
) -> torch.Tensor:
    """The same tensor; the op that made it may use this share of temporary memory.

    It acts on convolutions, matrix products and indexed reads. The share is that of a
    tile's memory, from 0 to 1; without a wish it is 0.6.
    """
    check_tensor(tensor, "The first argument of set_available_memory")
    proportion = float(available_memory_proportion)
    if not 0 <= proportion <= 1:
        raise Error(
            "set_available_memory takes a proportion of memory from 0 to 1, not "
            f"{proportion}."
        )
    return _noted(tensor, Notes(memory_proportion=proportion))


def recomputationCheckpoint(*tensors: Any) -> Any:
    """The same tensors; recomputation keeps them and does not compute them again.

    One list or tuple gives one of the same type, several tensors give a tuple.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        sequence = tensors[0]
        return type(sequence)(_checkpoint(tensor) for tensor in sequence)
    kept = tuple(_checkpoint(tensor) for tensor in tensors)
    return kept[0] if len(kept) == 1 else kept


def _checkpoint(tensor: Any) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(
            "recomputationCheckpoint takes tensors, or one list or tuple of them, not "
            f"{type(tensor).__name__}."
        )
    return _noted(tensor, Notes(is_checkpoint=True))


_DIMENSIONS = {
    MatMulSerializationMode.InputChannels: SplitDimension.ROWS,
    MatMulSerializationMode.ReducingDim: SplitDimension.INNER,
    MatMulSerializationMode.OutputChannels: SplitDimension.COLUMNS,
}


def serializedMatMul(
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    mode: MatMulSerializationMode,
    factor: int = 0,
    keep_precision: bool = False,
) -> torch.Tensor:
    """The matrix product, computed in `factor` parts one after the other.

    `mode` says which dimension is split. The parts need less memory at a time; the
    values are those of torch.matmul.
    """
    check(isinstance(keep_precision, bool), "keep_precision must be a bool.")
    check(isinstance(factor, int), "factor must be an int.")
    check(
        isinstance(mode, MatMulSerializationMode),
        "mode must be a poptorch.MatMulSerializationMode.",
    )
    product = torch.matmul(lhs, rhs)
    if mode is MatMulSerializationMode.Disabled:
        return product
    split = SerialSplit(_DIMENSIONS[mode], factor)
    return _noted(product, Notes(serial_split=split))
