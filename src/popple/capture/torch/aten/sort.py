"""Lowering of sort, top-k, median and k-th value."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, one_op
from popple.capture.torch.builder import NodeContext
from popple.graph import DType, TensorType


def lower_pick(context: NodeContext) -> None:
    """One element of each row by its rank: sort, then look there."""
    source = context.inputs()[0]
    kind = context.type_of(source)
    types = [kind, TensorType(DType.I32, kind.shape)]
    ordered = context.emit("sort", [source], types, suffix=".sorted")
    names = [
        context.emit("slice", [name], [picked], suffix=f".{index}", storage=name)[0]
        for index, (name, picked) in enumerate(
            # `median` of everything has no indices: one result less.
            zip(ordered, context.result_types(), strict=False)
        )
    ]
    context.finish_all(names)


LOWERINGS: dict[str, Lowering] = {
    "aten.sort": one_op("sort"),
    "aten.topk": one_op("top_k"),
    "aten.kthvalue": lower_pick,
    "aten.median": lower_pick,
}
