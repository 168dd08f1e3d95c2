"""Ordering along the last dimension."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.graph import DType, TensorType


def lower_top_k(context: OpContext) -> Sequence[Known]:
    """The largest and their places."""
    return context.emit("top_k", [context.name(0)], context.result_types())


def lower_nth(context: OpContext) -> Sequence[Known]:
    """The n-th of each row: sort, then look there."""
    name, result = context.name(0), context.result_type()
    kind = context.type_of(name)
    types = [kind, TensorType(DType.I32, kind.shape)]
    ordered, _ = context.emit("sort", [name], types, suffix=".sorted")
    return [context.emit_one("slice", [ordered], result, storage=ordered)]


def lower_in_top_k(context: OpContext) -> Sequence[Known]:
    """Whether the target is among the largest: compare with its prediction."""
    predictions, targets = context.name(0), context.name(1)
    kind, result = context.type_of(predictions), context.result_type()
    # Counting larger predictions takes one pass; sorting would take many.
    own = TensorType(kind.dtype, (*result.shape, 1))
    found = context.emit_one("gather", [predictions, targets], own, suffix=".own")
    larger = TensorType(DType.BOOL, kind.shape)
    mask = context.emit_one("greater", [predictions, found], larger, suffix=".larger")
    counted = TensorType(DType.I32, result.shape)
    attrs = {"dims": (1,)}
    count = context.emit_one(
        "reduce_sum", [mask], counted, suffix=".count", attrs=attrs
    )
    return [context.emit_one("less", [count], result)]


RULES: dict[str, Rule] = {
    "InTopK": lower_in_top_k,
    "InTopKV2": lower_in_top_k,
    "NthElement": lower_nth,
    "TopK": lower_top_k,
    "TopKV2": lower_top_k,
    "ApproxTopK": lower_top_k,
}
