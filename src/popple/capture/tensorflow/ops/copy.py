"""Traffic with the host: feeds in and out, prints, calls of Python."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.forms import nothing
from popple.graph import Role

_FEEDS = (
    "IteratorGetNext",
    "IteratorGetNextSync",
    "QueueDequeueV2",
    "QueueDequeueManyV2",
    "QueueDequeueUpToV2",
)
_ENQUEUES = ("QueueEnqueueV2", "QueueEnqueueManyV2")
_CALLS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
# Checks, logs and bookkeeping of the host: they are compiled to nothing.
_NOTHING = (
    "Abort",
    "AnonymousIteratorV3",
    "Assert",
    "ConsumeMutexLock",
    "ControlTrigger",
    "DestroyResourceOp",
    "FIFOQueueV2",
    "IsVariableInitialized",
    "IteratorV2",
    "LoopCond",
    "MakeIterator",
    "NoOp",
    "OneShotIterator",
    "Print",
    "PrintV2",
    "QueueCloseV2",
    "QueueSizeV2",
    "ScalarSummary",
    "StackCloseV2",
    "Timestamp",
    "VarIsInitializedOp",
    "WriteHistogramSummary",
    "WriteScalarSummary",
    "WriteSummary",
)


def lower_feed(context: OpContext) -> Sequence[Known]:
    """What the host sends for every micro-batch."""
    results: list[Known] = []
    for index, kind in enumerate(context.found_types):
        name = f"{context.tag.name}.{index}"
        declared = kind and context.builder.declare(name, kind, Role.INPUT)
        results.append(declared or None)
    context.effects.fed += [name for name in results if isinstance(name, str)]
    return results


def lower_enqueue(context: OpContext) -> Sequence[Known]:
    """What goes back to the host."""
    context.effects.outputs += context.names()
    return []


def lower_print(context: OpContext) -> Sequence[Known]:
    """Print passes its first input through and shows the others."""
    return context.inputs[: len(context.op.outputs)]


def lower_host_call(context: OpContext) -> Sequence[Known]:
    """Operands go to the host, results come from there."""
    for index, name in enumerate(context.names()):
        context.emit("stream_out", [name], [], suffix=f".operand{index}")
    return [
        None
        if kind is None
        else context.emit_one("stream_in", [], kind, suffix=f".result{index}")
        for index, kind in enumerate(context.found_types)
    ]


RULES: dict[str, Rule] = {
    **dict.fromkeys(_NOTHING, nothing),
    **dict.fromkeys(_FEEDS, lower_feed),
    **dict.fromkeys(_ENQUEUES, lower_enqueue),
    **dict.fromkeys(_CALLS, lower_host_call),
    "Print": lower_print,
}
