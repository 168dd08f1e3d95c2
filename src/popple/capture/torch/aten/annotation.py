"""Popple's own operators: marks, which cost nothing, and traffic with the host."""

from __future__ import annotations

from collections.abc import Callable

from popple.capture.torch.aten.forms import Lowering, same_value
from popple.capture.torch.builder import NodeContext
from popple.graph import Attr

MEMORY_PROPORTION = "memory_proportion"
SERIAL_SPLIT = "serial_split"
CHECKPOINT = "checkpoint"

PLANNED = frozenset({"matmul", "conv", "gather"})
"""Families of ops that take wishes of their own about their plan."""


def _memory_proportion(value: str) -> dict[str, Attr]:
    return {MEMORY_PROPORTION: float(value)}


def _serial_split(value: str) -> dict[str, Attr]:
    """`dimension factor`, for example "reducing_dim 4"."""
    dimension, factor = value.split()
    return {"serial_dim": dimension, "serial_factor": int(factor)}


def _checkpoint(_: str) -> dict[str, Attr]:
    return {CHECKPOINT: True}


Notes = tuple[Callable[[str], dict[str, Attr]], frozenset[str] | None]

# Marks that become attributes, and the families of ops that take them (None: all).
_NOTES: dict[str, Notes] = {
    MEMORY_PROPORTION: (_memory_proportion, PLANNED),
    SERIAL_SPLIT: (_serial_split, frozenset({"matmul"})),
    CHECKPOINT: (_checkpoint, None),
}


def lower_mark(context: NodeContext) -> None:
    """A note on the op that made the tensor."""
    source = context.inputs()[0]
    kind, value = context.args[1:3]
    if kind in _NOTES:
        attrs_of, families = _NOTES[kind]
        name = context.builder.name_of(source)
        context.builder.note(name, attrs_of(value), families)
    same_value(context)


def lower_print(context: NodeContext) -> None:
    """A copy to the host, unless the result is unused, which drops the printing."""
    if context.node.users:
        context.emit("stream_out", context.inputs()[:1], [], suffix=".host")
    same_value(context)


def lower_host_call(context: NodeContext) -> None:
    """Operands go to the host, results come from there."""
    operands = context.args[0]
    for index, operand in enumerate(operands):
        context.emit("stream_out", [operand], [], suffix=f".operand{index}")
    results = [
        context.emit("stream_in", [], [kind], suffix=f".result{index}")[0]
        for index, kind in enumerate(context.result_types())
    ]
    context.finish_all(results)


LOWERINGS: dict[str, Lowering] = {
    "popple.mark": lower_mark,
    "popple.print_tensor": lower_print,
    "popple.host_call": lower_host_call,
}
