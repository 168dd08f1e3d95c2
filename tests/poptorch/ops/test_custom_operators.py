"""Every operator of our own keeps the promises that PyTorch holds operators to.

`opcheck` runs an operator for real and on fake tensors, and compares types, shapes and
strides; compiled programs rely on all three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import poptorch
from popple.capture.torch import operators
from popple.capture.torch.operators import HostFunction
from popple.engine.torch.rewrites.outbox import Outbox

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor")
OWN = ("popple", "poptorch")
T, B, N, H = 5, 3, 4, 6
ops: Any = torch.ops
TEXTS = ["auto", " ", "[", "]"]
KEPT: list[Any] = []  # what operators find by a number while they are checked


def _states(kind: str) -> list[Tensor]:
    return [torch.randn(B, H) for _ in range(2 if kind == "lstm" else 1)]


def _layer(kind: str, has_biases: bool) -> tuple[Any, ...]:
    gates = (4 if kind == "lstm" else 3) * H
    weights = [torch.randn(gates, N), torch.randn(gates, H)]
    biases = [torch.randn(gates) for _ in range(2 * has_biases)]
    # Batches come first in most programs: the layer sees a transposed view.
    return torch.randn(B, T, N).transpose(0, 1), _states(kind), [*weights, *biases]


def _recurrent(kind: str, trains: bool = True) -> tuple[Any, ...]:
    return (*_layer(kind, has_biases=True), kind, trains)


def _recurrent_backward(kind: str) -> tuple[Any, ...]:
    x, states, weights = _layer(kind, has_biases=kind == "gru")
    # Gradients of the outputs come transposed, too, or as one number repeated.
    gradients = [torch.randn(B, T, H).transpose(0, 1), *_states(kind)]
    return gradients, x.new_empty(0), x, states, weights, kind


def _ctc() -> tuple[Any, ...]:
    log_probs = torch.randn(T, B, 7).log_softmax(-1)
    targets, lengths = torch.randint(1, 7, (B, 2)), torch.tensor([T] * B)
    return log_probs, targets, lengths, torch.tensor([2] * B), 0, False


def _ctc_backward() -> tuple[Any, ...]:
    found = ops.popple.ctc(*_ctc())
    *operands, blank, zero_infinity = _ctc()
    return torch.randn(B), *operands, *found, blank, zero_infinity


def _host_call() -> tuple[Any, ...]:
    host = HostFunction(
        lambda x: [x * 2], "double", ((torch.Size([2]), torch.float32),)
    )
    KEPT.append(host)
    host.call([torch.ones(2)], None)  # which gives it a number
    return [torch.ones(2)], None, max(operators._host_functions)


def _send() -> tuple[Any, ...]:
    outbox = Outbox("cpu")
    KEPT.append(outbox)
    return [torch.ones(2), torch.ones(())], outbox.key, [1]


CASES: dict[str, tuple[str, Callable[[], tuple[Any, ...]]]] = {
    "mark": ("popple::mark", lambda: (torch.randn(3, 2).t(), "kind", "value")),
    "GELU": (
        "popple::gelu_erf",
        lambda: (torch.randn(3, 2, requires_grad=True).t(),),
    ),
    "print": (
        "popple::print_tensor",
        lambda: (torch.randn(3), None, "title", "", [9, 3, 80, 4], TEXTS),
    ),
    "host call": ("popple::host_call", _host_call),
    "send": ("popple::send", _send),
    "ctc": ("popple::ctc", _ctc),
    "ctc backward": ("popple::ctc_backward", _ctc_backward),
    "LSTM": ("popple::recurrent", lambda: _recurrent("lstm")),
    "LSTM, inference": ("popple::recurrent", lambda: _recurrent("lstm", False)),
    "GRU": ("popple::recurrent", lambda: _recurrent("gru")),
    "GRU reset before": ("popple::recurrent", lambda: _recurrent("gru_reset_before")),
    "LSTM backward": (
        "popple::recurrent_backward",
        lambda: _recurrent_backward("lstm"),
    ),
    "GRU backward": ("popple::recurrent_backward", lambda: _recurrent_backward("gru")),
    "beam search": (
        "poptorch::ctc_beam_search_decoder",
        lambda: (torch.rand(T, B, 4).log_softmax(-1), torch.tensor([T] * B), 0, 3, 2),
    ),
    "farthest points": (
        "poptorch::fps",
        lambda: (torch.randn(10, 3), torch.tensor([0, 5]), [0, 5, 10], 0.5),
    ),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_operators_keep_their_promises(name: str, device: str) -> None:
    path, sample = CASES[name]
    namespace, operator = path.split("::")
    arguments = pytree.tree_map_only(Tensor, lambda tensor: tensor.to(device), sample())
    overload = getattr(getattr(ops, namespace), operator).default
    torch.library.opcheck(overload, arguments, test_utils=CHECKS)


def test_no_operator_is_left_out() -> None:
    assert poptorch.ops  # whose import registers all of them
    names = {
        schema.name
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.split("::")[0] in OWN
    }
    assert names == {path for path, _ in CASES.values()}
