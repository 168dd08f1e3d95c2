"""Regions: several TensorFlow ops that stand for one op of the machine.

A facade marks the ops it builds for one op of the IPU with the attribute `REGION`,
whose value is `kind` and a number that no other region has: "gelu:7". The kinds are
ops of the Graph, and four more: `exchange`, whatever replicas send each other;
`accumulate`, a sum over micro-batches, which the passes of `place` write; `same`, whose
result stands for one of its inputs (random rounding, wrong labels marked: the machine
does that at no cost of its own); and `nothing`, which the machine has no part in.
What follows in braces are attributes of the op: 'layer_norm:8 {"num_statistics": 64}'.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.framework import Operation, Tensor, static_shape
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.types import tensor_type
from popple.capture.tensorflow.walk import Environment, Surroundings, Walker
from popple.graph import Attr, Role, TensorType, get_op
from popple.marks import ACCUMULATE, EXCHANGE, NOTHING, SAME


def walk_region(
    walker: Walker,
    label: str,
    ops: Sequence[Operation],
    found: Environment,
    around: Surroundings,
) -> None:
    """Write one op for a region; what leaves it is added to `found`."""
    kind, attrs = parse_label(label)
    if kind == NOTHING:
        found.update((id(tensor), None) for op in ops for tensor in op.outputs)
        return
    # These three give one result, which is that of their last op.
    is_special = kind in (EXCHANGE, ACCUMULATE, SAME)
    results = ops[-1].outputs if is_special else _leaving(ops)
    if not is_special and get_op(kind).num_outputs not in (None, len(results)):
        # Something inside is read from outside: no single op gives that.
        for op in ops:
            walker.walk_op(op, found, around)
        return
    context = _context(walker, ops, found, around)
    types = [_type_of(context, tensor) for tensor in results]
    if kind in (ACCUMULATE, SAME):
        is_sum = kind == ACCUMULATE
        made: Sequence[Known] = [_find_of_type(context, types[0], is_sum)]
    elif kind == EXCHANGE:
        made = [_exchange(context, types[0], walker.replicas)]
    else:
        # Constants that enter (scales, zeros) are no operands of the machine's op.
        names = [known for known in context.inputs if isinstance(known, str)]
        made = context.emit(kind, names, types, attrs=attrs)
    found.update(zip(map(id, results), made, strict=True))


def _find_of_type(context: OpContext, wanted: TensorType, is_sum: bool) -> Known:
    """What enters a region and has the type of what leaves it.

    Of a sum over micro-batches that is the addend: a loop may carry the sum itself.
    """
    places = [i for i in range(len(context.inputs)) if context.input_type(i) == wanted]
    found = [context.inputs[i] for i in places]
    addends = [known for known in found if not (is_sum and _is_kept(context, known))]
    return (addends or found)[0]


def _is_kept(context: OpContext, known: Known) -> bool:
    """Whether something is memory that a loop carries from trip to trip."""
    value = context.builder.values.get(known) if isinstance(known, str) else None
    return value is not None and value.role is Role.STATE


def _exchange(context: OpContext, received: TensorType, replicas: int) -> str:
    sent = context.name_of(context.inputs[0], f"{context.tag.name}.sent")
    kind = exchange_kind(context.type_of(sent), received)
    return context.emit_one(kind, [sent], received, attrs={"replicas": replicas})


def parse_label(label: str) -> tuple[str, dict[str, Attr]]:
    """Kind and attributes of a region."""
    head, _, rest = label.partition(" ")
    kind = head.partition(":")[0]
    return kind, get_op(kind).schema.from_json(json.loads(rest)) if rest else {}


def exchange_kind(sent: TensorType, received: TensorType) -> str:
    """What an exchange between replicas is, by the sizes of what goes in and out."""
    if received.num_elements > sent.num_elements:
        return "all_gather"
    if received.num_elements < sent.num_elements:
        return "reduce_scatter"
    return "all_reduce"


def _leaving(ops: Sequence[Operation]) -> list[Tensor]:
    """Tensors that are read outside; of a region nobody reads, the last ones."""
    inside = set(ops)
    tensors = [tensor for op in ops for tensor in op.outputs]
    read = [t for t in tensors if not inside.issuperset(t.consumers())]
    return read or list(ops[-1].outputs)


def _context(
    walker: Walker, ops: Sequence[Operation], found: Environment, around: Surroundings
) -> OpContext:
    """The last op, with all numbers that enter the region, those computed first."""
    inside = set(ops)
    tensors = [t for op in ops for t in op.inputs if t.op not in inside]
    known = [walker.find(tensor, found) for tensor in tensors]
    # An op of the Graph reads each operand once, however often the region does.
    computed = dict.fromkeys(each for each in known if isinstance(each, str))
    constants = [each for each in known if isinstance(each, np.ndarray)]
    inputs = (*computed, *constants)
    tag = walker.tag(ops[-1], around)
    tag = replace(tag, phase=tag.phase or walker.phase_behind(ops[-1], inputs))
    return OpContext(walker.builder, walker.effects, ops[-1], tag, inputs)


def _type_of(context: OpContext, tensor: Tensor) -> TensorType:
    shape = static_shape(tensor)
    if shape is None:
        raise context.error(f"the shape of {tensor.name} is not known when compiling")
    return tensor_type(tensor.dtype, shape)
