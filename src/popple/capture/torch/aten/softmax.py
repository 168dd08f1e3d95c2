"""Lowering of softmax, log-softmax and their gradients."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, emit_one
from popple.capture.torch.builder import NodeContext


def _softmax(kind: str, dim_at: int) -> Lowering:
    def lower(context: NodeContext) -> None:
        rank = max(len(context.result_types()[0].shape), 1)
        emit_one(context, kind, {"dim": int(context.args[dim_at]) % rank})

    return lower


LOWERINGS: dict[str, Lowering] = {
    "aten._softmax": _softmax("softmax", 1),
    "aten._safe_softmax": _softmax("softmax", 1),
    "aten._log_softmax": _softmax("log_softmax", 1),
    "aten._softmax_backward_data": _softmax("softmax_grad", 2),
    "aten._log_softmax_backward_data": _softmax("log_softmax_grad", 2),
}
