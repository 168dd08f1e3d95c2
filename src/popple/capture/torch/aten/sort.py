"""Ordering along a dimension."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, emit_one, one_op
from popple.capture.torch.builder import NodeContext


def lower_top_k(context: NodeContext) -> None:
    """The `k` largest."""
    emit_one(context, "top_k", {"k": int(context.args[1])})


LOWERINGS: dict[str, Lowering] = {
    "aten.sort": one_op("sort"),
    "aten.topk": lower_top_k,
    "aten.kthvalue": one_op("sort"),
    "aten.median": one_op("sort"),
}
