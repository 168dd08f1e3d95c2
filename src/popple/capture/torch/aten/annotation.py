"""Lowering of Popple's own operators: marks, printed tensors, host calls."""

from __future__ import annotations

from collections.abc import Iterator

from popple.capture.torch.aten.forms import Lowering, same_value
from popple.capture.torch.builder import NodeContext
from popple.graph import Notes, parse_notes
from popple.marks import HOST_CALL, MARK, NOTE, PRINT_TENSOR

PLANNED = frozenset({"matmul", "conv", "gather"})
"""Families of ops that take wishes of their own about their plan."""

# Notes on a tensor that other ops than those take: families, None for all of them.
_TAKERS: dict[str, frozenset[str] | None] = {
    "is_checkpoint": None,
    "serial_split": frozenset({"matmul"}),
}


def lower_mark(context: NodeContext) -> None:
    """Notes go to the op that made the tensor; other marks are for front ends."""
    source = context.inputs()[0]
    kind, value = context.args[1:3]
    if kind == NOTE:
        name = context.builder.name_of(source)
        # Each note goes its own way: what one family does not take, another may.
        for notes, families in _by_taker(parse_notes(value)):
            context.builder.note(name, notes, families)
    same_value(context)


def _by_taker(notes: Notes) -> Iterator[tuple[Notes, frozenset[str] | None]]:
    """Each note alone, with the families of ops that take it."""
    for name, value in notes.said().items():
        yield Notes(**{name: value}), _TAKERS.get(name, PLANNED)


def lower_print(context: NodeContext) -> None:
    """A copy to the host, unless the result is unused, which drops the printing."""
    # As in PopTorch, a printed tensor whose result nobody uses is not printed.
    if context.node.users:
        context.emit("stream_out", context.inputs()[:1], [], suffix=".host")
    same_value(context)


def lower_host_call(context: NodeContext) -> None:
    """Operands go to the host, results come from there."""
    operands = context.args[0]
    # The host calls Python between the two: all operands leave before results come.
    for index, operand in enumerate(operands):
        context.emit("stream_out", [operand], [], suffix=f".operand{index}")
    results = [
        context.emit("stream_in", [], [kind], suffix=f".result{index}")[0]
        for index, kind in enumerate(context.result_types())
    ]
    context.finish_all(results)


LOWERINGS: dict[str, Lowering] = {
    MARK: lower_mark,
    PRINT_TENSOR: lower_print,
    HOST_CALL: lower_host_call,
}
