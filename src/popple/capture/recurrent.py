"""What recurrent layers keep of each step for their gradients, in every framework."""

from __future__ import annotations

from popple.graph import TensorType

_KEPT_UNITS = {"lstm": 6, "gru": 4, "gru_reset_before": 3}
"""States of a step kept for its gradient: gates, and for an LSTM the cell before and
the tanh of the cell after it (getFwdIntermediatesToSave in PopLibs popnn/Lstm.cpp)."""


def kept_type(cell: str, outputs: TensorType) -> TensorType:
    """The type of what a layer keeps that has these outputs [T,B,H]."""
    time, batch, size = outputs.shape
    return TensorType(outputs.dtype, (time, batch, _KEPT_UNITS[cell] * size))
