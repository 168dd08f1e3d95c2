"""Values and gradients of a recurrent layer, by torch's kernels; the tape between them.

Input, states and weights come in, as `popple.capture.torch.recurrent` says; results and
a `Tape` go out, and from that the gradients. All kernels are torch's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Tape(Protocol):
    """A layer's results, from which one can go back to what it read."""

    def results(self) -> list[Tensor]:
        """Outputs and last states; the tape stays true if these are overwritten."""
        ...

    def gradients(self, given: list[Tensor]) -> list[Tensor]:
        """Of input, states and weights, none of which share memory."""
        ...


def record_tape(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str
) -> Tape:
    """Run a layer for training."""
    if kind == "lstm" and _suits_onednn((x, *states, *weights)):
        return _OneDnnTape.record(x, states, weights)
    return _AutogradTape.record(x, states, weights, kind)


def compute(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str, trains: bool
) -> list[Tensor]:
    """Outputs and last states."""
    # torch has no kernel for this kind: it is written out step by step.
    if kind == "gru_reset_before":
        return _reset_before(x, states[0], weights)
    first = [state.unsqueeze(0) for state in states]
    settings = (weights, len(weights) == 4, 1, 0.0, trains)
    if kind == "lstm":
        found = torch.lstm(x, first, *settings, False, False)
    else:
        found = torch.gru(x, first[0], *settings, False, False)
    return [found[0], *(last.squeeze(0) for last in found[1:])]


@dataclass(frozen=True)
class _AutogradTape:
    """Any layer: torch records."""

    found: list[Tensor]
    leaves: list[Tensor]

    @classmethod
    def record(
        cls, x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str
    ) -> _AutogradTape:
        with _differentiable():
            leaves = [t.detach().requires_grad_() for t in (x, *states, *weights)]
            end = 1 + len(states)
            found = compute(leaves[0], leaves[1:end], leaves[end:], kind, trains=True)
        return cls(found, leaves)

    def results(self) -> list[Tensor]:
        return [each.detach().clone() for each in self.found]

    def gradients(self, given: list[Tensor]) -> list[Tensor]:
        with _differentiable():
            return _apart(torch.autograd.grad(self.found, self.leaves, given))


_FORWARD: Any = torch.ops.aten.mkldnn_rnn_layer.default
_BACKWARD: Any = torch.ops.aten.mkldnn_rnn_layer_backward.default
_LSTM_MODE = 2


@dataclass(frozen=True)
class _OneDnnTape:
    """An LSTM that torch leaves to oneDNN.

    Its kernels are called as torch.lstm and its gradient call them. What autograd does
    around them would take a quarter of the time of a short layer.
    """

    inputs: tuple[Tensor, ...]
    found: tuple[Tensor, ...]
    workspace: Tensor
    has_biases: bool

    @classmethod
    def record(
        cls, x: Tensor, states: list[Tensor], weights: list[Tensor]
    ) -> _OneDnnTape:
        # The kernel reads memory from its start on, whatever the strides are.
        x, hidden, cell = (each.contiguous() for each in (x, *states))
        has_biases = len(weights) == 4
        # Places that it does not read without biases must be filled, too.
        filled = weights if has_biases else (*weights, *weights)
        inputs = (x, *filled, hidden, cell)
        size = hidden.shape[-1]
        settings = (False, [], _LSTM_MODE, size, 1, has_biases, False, False, True)
        # It fills a workspace only where gradients may be asked for.
        with torch.enable_grad():
            *found, workspace = _FORWARD(*inputs, *settings)
        return cls(inputs, tuple(found), workspace, has_biases)

    def results(self) -> list[Tensor]:
        return [each.clone() for each in self.found]

    def gradients(self, given: list[Tensor]) -> list[Tensor]:
        size = self.found[1].shape[-1]
        settings: tuple[Any, ...] = (
            *(False, _LSTM_MODE, size, 1, self.has_biases),
            *(True, False, [], False, self.workspace),
        )
        x, wx, wh, bias, _, hidden, cell = _BACKWARD(
            *self.inputs, *self.found, *given, *settings
        )
        # Both biases are added to the same gates, so their gradients are equal.
        biases = [bias, bias.clone()] if self.has_biases else []
        return [x, hidden, cell, wx, wh, *biases]


def _suits_onednn(tensors: Iterable[Tensor]) -> bool:
    """Whether torch.lstm leaves such tensors to oneDNN.

    Half precision may be, too, on some processors: torch decides about that.
    """
    mkldnn: Any = torch.backends.mkldnn
    return mkldnn.enabled and mkldnn.is_available() and all(map(_is_plain, tensors))


def _is_plain(tensor: Tensor) -> bool:
    """Of single precision, in the processor's memory, not empty."""
    is_here = tensor.is_cpu and tensor.layout == torch.strided
    return is_here and tensor.dtype == torch.float32 and tensor.numel() > 0


def _apart(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The tensors, copied where they share memory: both biases have one gradient."""
    taken: set[int] = set()
    found: list[Tensor] = []
    for tensor in tensors:
        start = tensor.untyped_storage().data_ptr()
        found.append(tensor.clone() if start in taken else tensor)
        taken.add(start)
    return found


@contextmanager
def _differentiable() -> Iterator[None]:
    """Inside an operator, torch records nothing for gradients unless told to."""
    keys = torch._C._dispatch_tls_local_exclude_set()
    for key in ("AutogradFunctionality", "ADInplaceOrView"):
        keys = keys.remove(getattr(torch._C.DispatchKey, key))
    included = torch._C._dispatch_tls_local_include_set()
    with torch._C._ForceDispatchKeyGuard(included, keys), torch.enable_grad():
        yield


def _reset_before(x: Tensor, h: Tensor, weights: list[Tensor]) -> list[Tensor]:
    wx, wh, *biases = weights
    size = h.shape[-1]
    outputs: list[Tensor] = []
    from_input = F.linear(x, wx)
    for bias in biases:
        from_input = from_input + bias
    for each in from_input.unbind(0):
        gates = torch.sigmoid(each[:, : 2 * size] + F.linear(h, wh[: 2 * size]))
        reset, update = gates.split(size, 1)
        mixed = each[:, 2 * size :] + F.linear(reset * h, wh[2 * size :])
        h = update * h + (1 - update) * torch.tanh(mixed)
        outputs.append(h)
    return [torch.stack(outputs), h]
