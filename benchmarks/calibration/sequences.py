"""Sequences: LSTM, GRU and the connectionist temporal classification loss.

The recurrent tools compute gradients but do not add them to the weights.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.calibration.model_case import Case, Once, Operation, Passes, zeros
from benchmarks.calibration.params import Params
from benchmarks.calibration.products import with_options
from benchmarks.calibration.rows import NotExpressed
from popple.capture.torch.recurrent import gru_layer

_NUM_LSTM_GATES = 4
_NUM_GRU_GATES = 3


def lstm_case(params: Params) -> Case:
    """One LSTM layer over a sequence."""
    operands = _recurrent_operands(params, _NUM_LSTM_GATES)
    operands["cell"] = torch.zeros_like(operands["state"])
    return _recurrent_case(params, _lstm, operands)


def gru_case(params: Params) -> Case:
    """One GRU layer over a sequence, reset before or after the product."""
    operands = _recurrent_operands(params, _NUM_GRU_GATES)
    operation = _gru_reset_after if params.flag("reset-after") else _gru
    return _recurrent_case(params, operation, operands)


class _Reader(nn.Module):
    """The losses of what comes from the host; gradients are made with them."""

    def __init__(self, is_logits: bool) -> None:
        super().__init__()
        self.is_logits = is_logits

    def forward(
        self, x: Tensor, labels: Tensor, lengths: Tensor, counts: Tensor
    ) -> Tensor:
        """One loss."""
        chances = F.log_softmax(x, -1) if self.is_logits else x
        losses = F.ctc_loss(chances, labels, lengths, counts, 0, "none")
        return losses.flatten()[0]


def ctc_case(params: Params) -> Case:
    """The loss and its gradient, from logits or from log probabilities.

    The tool cannot do without its data and runs their upload with the rest.
    """
    length, labels = params.integer("max-time"), params.integer("max-label-length")
    batch, classes = params.integer("batch", 1), params.integer("num-classes")
    dtype = params.dtype("in-type", "float")
    is_logits = params.flag("logit-inputs", True)
    params.text("disable-always-satisfiable-error", "true")
    if params.dtype("out-type", "float") != dtype:
        raise NotExpressed("an output type of its own")
    inputs = (
        zeros(length, batch, classes, dtype=dtype),
        torch.ones(batch, labels, dtype=torch.int64),
        torch.full((batch,), length),
        torch.full((batch,), labels),
    )
    return with_options(params, Case(_Reader(is_logits), inputs=inputs))


def _recurrent_operands(params: Params, num_gates: int) -> dict[str, Tensor]:
    length, batch = params.integer("sequence-size"), params.integer("batch-size", 1)
    inputs, outputs = params.integer("input-size"), params.integer("output-size")
    dtype, width = params.dtype(), num_gates * outputs
    # In which order the gates are stored does not change what is computed.
    params.text("cell-order", "default")
    return {
        "x": zeros(length, batch, inputs, dtype=dtype),
        "state": zeros(1, batch, outputs, dtype=dtype),
        "input_weights": zeros(width, inputs, dtype=dtype),
        "state_weights": zeros(width, outputs, dtype=dtype),
        "bias": zeros(width, dtype=dtype),
    }


def _recurrent_case(
    params: Params, operation: Operation, operands: dict[str, Tensor]
) -> Case:
    phase = params.text("phase", "fwd")
    if phase not in ("fwd", "all"):
        raise NotExpressed(f"phase {phase} alone")
    make = Once if phase == "fwd" else Passes
    return with_options(params, Case(make(operation, operands)))


def _lstm(
    x: Tensor, state: Tensor, wx: Tensor, wh: Tensor, bias: Tensor, cell: Tensor
) -> Tensor:
    weights = [wx, wh, bias, torch.zeros_like(bias)]
    return torch.lstm(x, (state, cell), weights, True, 1, 0.0, False, False, False)[0]


def _gru_reset_after(
    x: Tensor, state: Tensor, wx: Tensor, wh: Tensor, bias: Tensor
) -> Tensor:
    weights = [wx, wh, bias, torch.zeros_like(bias)]
    return torch.gru(x, state, weights, True, 1, 0.0, False, False, False)[0]


def _gru(x: Tensor, state: Tensor, wx: Tensor, wh: Tensor, bias: Tensor) -> Tensor:
    """The reset gate scales the state before it is multiplied."""
    return gru_layer(x, [state[0]], [wx, wh, bias], resets_after=False)[0]
