"""Recurrent layers: functions that run a whole layer become one op of the Graph.

Keras has the loop of a plain LSTM or GRU in a function of its own, and so has the
facade for the IPU's layers, with the same arguments and results. TensorFlow makes two
functions of one that is trained: a forward one, whose further results are what the
backward one needs. Here these are a `KeptLayer`, by which a backward call finds the
layer it is the gradient of. Everything else that loops is walked.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from popple.capture.recurrent import kept_type
from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.framework import TensorFlowGraph
from popple.capture.tensorflow.known import KeptLayer, Known
from popple.capture.tensorflow.ops.forms import emit_elementwise
from popple.capture.tensorflow.walk import Call, Walker
from popple.graph import Attr, Phase, TensorType, parse_notes
from popple.marks import PLANNED

# Functions by the names they are traced with.
_CELLS = {
    "standard_lstm": "lstm",
    "standard_gru": "gru",
    "popnn_lstm": "lstm",
    "popnn_gru": "gru",
    "popnn_gru_reset_before": "gru_reset_before",
}
_FORWARD = re.compile(r"__(?:forward|inference)_([a-z_]+)_\d+")
_BACKWARD = re.compile(r"__inference___backward_([a-z_]+)_\d+_\d+")
_STATES = ("init_h", "init_c")
_MATRICES = ("kernel", "recurrent_kernel")
_NEEDED = frozenset({"inputs", "init_h", "kernel", "bias"})
# Where sequences end and how gates are scaled: next to nothing beside the products.
_LENGTHS, _SCORES = "lengths", "scores"
# Time and batch exchanged. Keras has the batch first, the Graph time first, because the
# machine runs a layer step by step and each step reads one slice.
_TURNED = (1, 0, 2)


def lower_recurrent(
    walker: Walker, call: Call, name: str, graph: TensorFlowGraph
) -> Sequence[Known] | None:
    """What the call of a recurrent layer gives; None for any other function."""
    if (match := _FORWARD.fullmatch(name)) and match[1] in _CELLS:
        names = [tensor.op.name for tensor in graph.inputs]
        arguments = dict(zip(names, call.inputs, strict=True))
        if _is_plain(arguments):
            cell = _CELLS[match[1]]
            return _lower_forward(_context(walker, call, cell), cell, arguments)
    if (match := _BACKWARD.fullmatch(name)) and match[1] in _CELLS:
        kept = next((k for k in call.inputs if isinstance(k, KeptLayer)), None)
        if kept is not None:
            context = _context(walker, call, kept.cell, Phase.BACKWARD)
            return _lower_backward(context, kept)
    return None


def _is_plain(arguments: Mapping[str, Known]) -> bool:
    """Whether this is the form that the Graph has an op for: no masks."""
    given = arguments.keys() - {_LENGTHS, _SCORES}
    return given >= _NEEDED and given <= {*_NEEDED, *_STATES, *_MATRICES}


def _context(
    walker: Walker, call: Call, cell: str, phase: Phase | None = None
) -> OpContext:
    """The call, named by its cell instead of by the call."""
    tag = walker.tag(call.op, call.around)
    phase = tag.phase or phase or walker.phase_behind(call.op, call.inputs)
    *scopes, _ = tag.name.split("/")
    tag = replace(tag, name="/".join([*scopes, cell]), phase=phase)
    return OpContext(walker.builder, walker.effects, call.op, tag, call.inputs)


def _lower_forward(
    context: OpContext, cell: str, arguments: Mapping[str, Known]
) -> list[Known]:
    """Last output, outputs, last states, a mark; then what the gradient needs."""
    given = {
        name: context.name_of(known, f"{context.tag.name}.{name}")
        for name, known in arguments.items()
        if name not in (_LENGTHS, _SCORES)
    }
    states = [given[name] for name in _STATES if name in given]
    x = _time_first(context, given["inputs"], states[0])
    matrices = [given[name] for name in _MATRICES if name in given]
    bias = given["bias"]
    # Keras keeps a GRU's biases as two rows, the Graph all biases as one.
    bias = context.reshape(bias, (context.type_of(bias).num_elements,), ".row")
    inputs = (x, *states, *matrices, bias)
    # Of the results all but last output, outputs, states and the mark are for the
    # backward function; an inference function has none, and then nothing is kept.
    num_kept = len(context.op.outputs) - 3 - len(states)
    types = _result_types(context, cell, x, states)[: None if num_kept else -1]
    attrs: dict[str, Attr] = {"cell": cell, "num_states": len(states)}
    forward, backward = map(parse_notes, json.loads(context.attr(PLANNED, '["", ""]')))
    outputs, *rest = context.emit(
        "recurrent", inputs, types, attrs=attrs, notes=forward
    )
    last = rest[: len(states)]
    # Keras tells by this number which implementation ran; nothing on the machine.
    mark = np.zeros((), np.float32)
    results: list[Known] = [last[0], _shown(context, outputs, last[0]), *last, mark]
    if num_kept:
        names = tuple(arguments)
        kept = KeptLayer(rest[-1], inputs, names, cell, len(states), backward)
        # Which of TensorFlow's intermediate results a backward call reads does not
        # matter: each of them leads back to the layer.
        results += [kept] * num_kept
    return results


def _result_types(
    context: OpContext, cell: str, x: str, states: Sequence[str]
) -> list[TensorType]:
    """Outputs, last states, what is kept."""
    sequence, *last = (context.type_of(name) for name in (x, *states))
    time, batch, _ = sequence.shape
    outputs = TensorType(sequence.dtype, (time, batch, last[0].shape[-1]))
    return [outputs, *last, kept_type(cell, outputs)]


def _time_first(context: OpContext, name: str, state: str) -> str:
    """A sequence with time before the batch; as it is if there is as much of both."""
    is_so = context.type_of(name).shape[1] == context.type_of(state).shape[0]
    return name if is_so else context.permute(name, _TURNED, ".time_first")


def _shown(context: OpContext, outputs: str, last: str) -> str:
    """The outputs as the program has them: batch first, or the last of them only."""
    shape = context.result_type(1).shape
    if context.type_of(outputs).shape == shape:
        return outputs
    if math.prod(shape) == context.type_of(last).num_elements:
        return context.reshape(last, shape, ".last")
    return context.permute(outputs, _TURNED, ".batch_first")


def _lower_backward(context: OpContext, kept: KeptLayer) -> list[Known]:
    """The gradient of every argument that has one."""
    x, state = kept.inputs[:2]
    sequence = _result_types(context, kept.cell, x, [state])[0]
    last, outputs, *states = context.inputs[: 2 + kept.num_states]
    # The last output and the last hidden state are the same tensor on the machine, so
    # their gradients add up.
    ends = [last, states[0]]
    if not _is_sequence(context, outputs, sequence):
        outputs, ends = None, [*ends, outputs]
    gradients = [
        _gradient(context, sequence, [outputs], ".outputs"),
        _gradient(context, context.type_of(state), ends, ".last"),
        *(_gradient(context, context.type_of(state), [s], ".cell") for s in states[1:]),
    ]
    inputs = (*gradients, kept.value, *kept.inputs)
    types = [context.type_of(name) for name in kept.inputs]
    attrs: dict[str, Attr] = {"cell": kept.cell, "num_states": kept.num_states}
    made = context.emit("recurrent_grad", inputs, types, attrs=attrs, notes=kept.notes)
    return _of_arguments(context, kept, gradients[0], made)


def _is_sequence(context: OpContext, known: Known, sequence: TensorType) -> bool:
    """Whether a gradient is that of all outputs, not of the last one only."""
    shape = known.shape if isinstance(known, np.ndarray) else ()
    if isinstance(known, str):
        shape = context.type_of(known).shape
    return math.prod(shape) == sequence.num_elements


def _gradient(
    context: OpContext, wanted: TensorType, parts: Sequence[Known], suffix: str
) -> str:
    """The sum of what is not constant, in the Graph's order; zeros if all is."""
    made = [name for name in parts if isinstance(name, str)]
    # TensorFlow passes zeros for results that the loss does not use: nothing to add.
    names = [_in_order(context, n, wanted) for n in made if not _is_fill(context, n)]
    if not names:
        return context.emit_one("fill", [], wanted, suffix=suffix)
    total, *others = names
    for index, other in enumerate(others):
        pair = [total, other]
        total = emit_elementwise(context, "add", pair, wanted, f"{suffix}{index}")
    return total


def _is_fill(context: OpContext, name: str) -> bool:
    maker = context.builder.find_maker(name)
    return maker is not None and maker.kind == "fill"


def _in_order(context: OpContext, name: str, wanted: TensorType) -> str:
    shape = context.type_of(name).shape
    if shape == wanted.shape:
        return name
    if len(wanted.shape) == 3:
        return context.permute(name, _TURNED, ".time_first")
    return context.reshape(name, wanted.shape, ".last")


def _of_arguments(
    context: OpContext, kept: KeptLayer, outputs: str, made: Sequence[str]
) -> list[Known]:
    """Gradients in the order of the function's arguments."""
    names = ("inputs", *_STATES[: kept.num_states], *_MATRICES, "bias")
    found = dict(zip((n for n in names if n in kept.arguments), made, strict=True))
    listed = [name for name in kept.arguments if name != _LENGTHS]
    return [
        _of_scores(context, outputs)
        if name == _SCORES
        else _as_given(context, found[name], context.result_type(index))
        for index, name in enumerate(listed)
    ]


def _as_given(context: OpContext, name: str, result: TensorType) -> str:
    """A gradient in the program's order: batch first, or rows of biases."""
    shape = context.type_of(name).shape
    if shape == result.shape:
        return name
    if len(shape) == 3:
        return context.permute(name, _TURNED, ".batch_first")
    return context.reshape(name, result.shape, ".rows")


def _of_scores(context: OpContext, outputs: str) -> str:
    """One number for each step and sample: a sum over the width of its output."""
    kind = context.type_of(outputs)
    attrs: dict[str, Attr] = {"dims": (2,)}
    return context.emit_one(
        "reduce_sum",
        [outputs],
        TensorType(kind.dtype, kind.shape[:2]),
        suffix=".scores",
        attrs=attrs,
    )
