"""Values and gradients of a recurrent layer, by torch's kernels; the tape between them.

Input, states and weights come in, as `popple.capture.torch.recurrent` says; results and
a `Tape` go out, and from that the gradients. All kernels are torch's; a GRU on the CPU
is put together from them in `gru_tape`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from popple.capture.torch.gru_tape import GruTape


class Tape(Protocol):
    """A layer's results, from which one can go back to what it read."""

    def results(self) -> list[Tensor]:
        """Outputs and last states; the tape stays true if these are overwritten."""
        ...

    def gradients(self, given: list[Tensor], read: list[Tensor]) -> list[Tensor]:
        """Of input, states and weights, none of which share memory.

        `read` is what the layer read. A tape keeps none of that memory: compiled code
        may have used it for something else, and give the same numbers elsewhere.
        """
        ...


def record_tape(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str
) -> Tape:
    """Run a layer for training."""
    if _is_for_onednn(x, states, weights, kind):
        return _OneDnnTape.record(x, states, weights)
    if kind == "gru" and all(map(_is_plain, (x, *states, *weights))):
        return GruTape.record(x, states[0], weights)
    return _AutogradTape.record(x, states, weights, kind)


def compute(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str, trains: bool
) -> list[Tensor]:
    """Outputs and last states."""
    # torch has no kernel for this kind: it is written out step by step.
    if kind == "gru_reset_before":
        return _reset_before(x, states[0], weights)
    first = [state.unsqueeze(0) for state in states]
    settings = (weights, _has_biases(weights), 1, 0.0, trains)
    if kind == "lstm":
        found = torch.lstm(x, first, *settings, False, False)
    else:
        found = torch.gru(x, first[0], *settings, False, False)
    return [found[0], *(last.squeeze(0) for last in found[1:])]


def infer(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str
) -> list[Tensor]:
    """Outputs and last states, in memory of their own."""
    if _is_for_onednn(x, states, weights, kind):
        return list(_forward(x, states, weights, trains=False)[:-1])
    weights = in_one_chunk(weights, kind)
    return [each.clone() for each in compute(x, states, weights, kind, trains=False)]


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
            own = [t.detach().clone() for t in (x, *states)]
            own += in_one_chunk(weights, kind)
            leaves = [t.requires_grad_() for t in own]
            end = 1 + len(states)
            found = compute(leaves[0], leaves[1:end], leaves[end:], kind, trains=True)
        return cls(found, leaves)

    def results(self) -> list[Tensor]:
        return [each.detach().clone() for each in self.found]

    def gradients(self, given: list[Tensor], read: list[Tensor]) -> list[Tensor]:
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

    found: tuple[Tensor, ...]
    workspace: Tensor

    @classmethod
    def record(
        cls, x: Tensor, states: list[Tensor], weights: list[Tensor]
    ) -> _OneDnnTape:
        # It fills a workspace only where gradients may be asked for.
        with torch.enable_grad():
            *found, workspace = _forward(x, states, weights, trains=True)
        return cls(tuple(found), workspace)

    def results(self) -> list[Tensor]:
        return [each.clone() for each in self.found]

    def gradients(self, given: list[Tensor], read: list[Tensor]) -> list[Tensor]:
        x, states, weights = read[0], read[1:3], read[3:]
        size, has_biases = states[0].shape[-1], _has_biases(weights)
        settings: tuple[Any, ...] = (
            *(False, _LSTM_MODE, size, 1, has_biases),
            *(True, False, [], False, self.workspace),
        )
        x, wx, wh, bias, _, hidden, cell = _BACKWARD(
            *_inputs(x, states, weights), *self.found, *given, *settings
        )
        # Both biases are added to the same gates, so their gradients are equal.
        biases = [bias, bias.clone()] if has_biases else []
        return [x, hidden, cell, wx, wh, *biases]


def _forward(
    x: Tensor, states: list[Tensor], weights: list[Tensor], trains: bool
) -> tuple[Tensor, ...]:
    """oneDNN's outputs, last states and workspace, none of which share memory."""
    size, has_biases = states[0].shape[-1], _has_biases(weights)
    settings = (False, [], _LSTM_MODE, size, 1, has_biases, False, False, trains)
    return _FORWARD(*_inputs(x, states, weights), *settings)


def _inputs(
    x: Tensor, states: list[Tensor], weights: list[Tensor]
) -> tuple[Tensor, ...]:
    """Operands as oneDNN's kernels take them."""
    # They read memory from its start on, whatever the strides are.
    x, hidden, cell = (each.contiguous() for each in (x, *states))
    # Places that are not read without biases must be filled, too.
    filled = weights if _has_biases(weights) else (*weights, *weights)
    return (x, *filled, hidden, cell)


def _has_biases(weights: list[Tensor]) -> bool:
    return len(weights) == 4


def _is_for_onednn(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str
) -> bool:
    """Whether torch.lstm would leave these to oneDNN."""
    mkldnn: Any = torch.backends.mkldnn
    is_there = kind == "lstm" and mkldnn.enabled and mkldnn.is_available()
    return is_there and all(map(_is_plain, (x, *states, *weights)))


def _is_plain(tensor: Tensor) -> bool:
    """Of single precision, in the processor's memory, not empty.

    oneDNN has half precision, too, on some processors: torch decides about that.
    """
    is_here = tensor.is_cpu and tensor.layout == torch.strided
    return is_here and tensor.dtype == torch.float32 and tensor.numel() > 0


_CUDNN_MODES = {"lstm": 2, "gru": 3}


def in_one_chunk(weights: list[Tensor], kind: str) -> list[Tensor]:
    """The weights; for a GPU as parts of one piece of memory, as cuDNN reads them.

    torch would do so, too, and warn that the program should have.
    """
    weights = [weight.detach() for weight in weights]
    if kind not in _CUDNN_MODES or not torch.backends.cudnn.is_acceptable(weights[0]):
        return weights
    inputs, size = weights[0].shape[1], weights[1].shape[1]
    settings = (_CUDNN_MODES[kind], size, 0, 1, False, False)
    with torch.no_grad():
        torch._cudnn_rnn_flatten_weight(weights, len(weights), inputs, *settings)
    return weights


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
