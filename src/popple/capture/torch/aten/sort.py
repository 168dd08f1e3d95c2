"""Ordering along a dimension."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, emit_one, one_op
from popple.capture.torch.builder import NodeContext
from popple.graph import DType, TensorType


def lower_top_k(context: NodeContext) -> None:
    """The `k` largest."""
    emit_one(context, "top_k", {"k": int(context.args[1])})


def lower_pick(context: NodeContext) -> None:
    """One element of each row by its rank: sort, then look there."""
    source = context.inputs()[0]
    kind = context.type_of(source)
    types = [kind, TensorType(DType.I32, kind.shape)]
    ordered = context.emit("sort", [source], types, suffix=".sorted")
    names = [
        context.emit("slice", [name], [picked], suffix=f".{index}", storage=name)[0]
        for index, (name, picked) in enumerate(
            zip(ordered, context.result_types(), strict=False)
        )
    ]
    context.finish_all(names)


LOWERINGS: dict[str, Lowering] = {
    "aten.sort": one_op("sort"),
    "aten.topk": lower_top_k,
    "aten.kthvalue": lower_pick,
    "aten.median": lower_pick,
}
