"""The forms most rules take: one op for one op, element by element, or a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from popple.capture.tensorflow.builder import Order, inverse, reorder
from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.graph import Attr, TensorType, get_op
from popple.marks import CHECKPOINT

AttrsOf = Callable[[OpContext], dict[str, Attr]]


def no_attrs(_: OpContext) -> dict[str, Attr]:
    """The attributes of ops that have none."""
    return {}


def one_op(kind: str, attrs_of: AttrsOf = no_attrs, num_inputs: int = 99) -> Rule:
    """The first inputs in, all results out, one op of this kind."""

    def lower(context: OpContext) -> Sequence[Known]:
        # Inputs behind those are shapes, axes and options, not data.
        names = context.names()[:num_inputs]
        types = context.result_types()
        return context.emit(kind, names, types, attrs=attrs_of(context))

    return lower


def elementwise(kind: str, order: Sequence[int] = ()) -> Rule:
    """One op element by element; `order` lists the inputs it takes."""

    def lower(context: OpContext) -> Sequence[Known]:
        chosen = [context.inputs[i] for i in order] if order else context.inputs
        return [emit_elementwise(context, kind, chosen)]

    return lower


def emit_elementwise(
    context: OpContext,
    kind: str,
    operands: Sequence[Known],
    result: TensorType | None = None,
    suffix: str = "",
) -> str:
    """One op element by element, in the order of what its operands are views of.

    A single number that is known when compiling is part of the op, if that may be.
    """
    result = result or context.result_type()
    kept = without_numbers(context, operands, result)
    least, _ = get_op(kind).arity
    names = [
        context.name_of(known, f"{context.tag.name}.operand{index}")
        for index, known in enumerate(kept if len(kept) >= least else operands)
    ]
    # Channels last is a view here. Computing in the order of its source keeps chains of
    # ops free of permutations between them.
    order = common_order(context, names, result.shape)
    if order is None:
        return context.emit_one(kind, names, result, suffix=suffix)
    sources = [context.in_order(name, order) for name in names]
    moved = TensorType(result.dtype, reorder(result.shape, inverse(order)))
    made = context.emit_one(kind, sources, moved, suffix=suffix)
    return context.permute(made, order)


def without_numbers(
    context: OpContext, operands: Sequence[Known], result: TensorType
) -> list[Known]:
    """Operands but for single constants, as far as one of the full shape remains.

    A constant of many equal elements is one number that is broadcast.
    """
    kept = [operand for operand in operands if not is_number(operand)]
    shapes = [context.type_of(name).shape for name in kept if isinstance(name, str)]
    return kept if result.shape in shapes else list(operands)


def is_number(known: Known) -> bool:
    """Whether something is a constant whose elements are all equal."""
    if not isinstance(known, np.ndarray) or not known.size:
        return False
    return known.size == 1 or bool((known == known.flat[0]).all())


def common_order(
    context: OpContext, names: Sequence[str], shape: tuple[int, ...]
) -> Order | None:
    """The order of the first operand of this shape that is a permuted view."""
    full = (name for name in names if context.type_of(name).shape == shape)
    orders = (context.source_order(name, len(shape)) for name in full)
    return next((order for order in orders if order is not None), None)


def rearranged(kind: str, attrs_of: AttrsOf = no_attrs) -> Rule:
    """One op on the first input that keeps its number of dimensions."""

    def lower(context: OpContext) -> Sequence[Known]:
        attrs = attrs_of(context)
        return [emit_in_source_order(context, kind, context.name(0), attrs)]

    return lower


def emit_in_source_order(
    context: OpContext, kind: str, name: str, attrs: Mapping[str, Attr]
) -> str:
    """One op on what a permuted view looks at, and its result permuted back."""
    result = context.result_type()
    order = context.source_order(name, len(result.shape))
    if order is None:
        return context.emit_one(kind, [name], result, attrs=attrs)
    source = context.in_order(name, order)
    moved = TensorType(result.dtype, reorder(result.shape, inverse(order)))
    return context.permute(context.emit_one(kind, [source], moved, attrs=attrs), order)


def view(kind: str, attrs_of: AttrsOf = no_attrs) -> Rule:
    """A result that shares memory with the first input."""

    def lower(context: OpContext) -> Sequence[Known]:
        name = context.name(0)
        result, attrs = context.result_type(), attrs_of(context)
        return [context.emit_one(kind, [name], result, storage=name, attrs=attrs)]

    return lower


def same_value(context: OpContext) -> Sequence[Known]:
    """The op changes nothing the machine would notice."""
    if context.attr(CHECKPOINT):
        for known in context.inputs:
            if isinstance(known, str):
                context.builder.keep(known)
    return context.inputs[: len(context.op.outputs)]


def nothing(context: OpContext) -> Sequence[Known]:
    """The machine has no part in the op."""
    return [None] * len(context.op.outputs)


def lower_generic(context: OpContext) -> Sequence[Known]:
    """An op without an entry: modelled by what it reads and writes.

    Results whose shape nobody knows are not modelled; whoever reads them is refused.
    """
    types = [found for found in context.found_types if found is not None]
    if context.op.outputs and not types:
        return nothing(context)
    attrs: dict[str, Attr] = {"framework_op": context.kind}
    supply = iter(context.emit("generic", context.names(), types, attrs=attrs))
    return [None if found is None else next(supply) for found in context.found_types]
