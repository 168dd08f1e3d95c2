"""The names under which programs know the tensors of a compiled model.

    input, input/1, ...       inputs
    fc1.weight                parameters and buffers
    fc1/MatMul:0              results of ops: scopes, op, number of the result; the
                              second of that name is fc1/MatMul:0/1
    Gradient___fc1.weight     gradients of one micro-batch
    UpdatedVar___fc1.weight   parameters after the update

Ops carry the names of the original's back end, which programs search for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch.fx import Node

from popple.capture.torch import LoweredStep, TracedStep, find_loss, gradient_nodes
from popple.engine.torch.session import CompiledStep
from popple.engine.torch.session.session import FINAL_LOSS_SCALE
from popple.graph import DType, Graph, Op, Phase, TensorType

__all__ = [
    "GRADIENT",
    "UPDATED",
    "NamedOp",
    "name_ops",
    "name_tensors",
    "named_ops",
    "tensor_names",
    "type_text",
]

GRADIENT = "Gradient___"
UPDATED = "UpdatedVar___"

_OP_NAMES = {
    "add": "Add",
    "avg_pool": "AveragePool",
    "broadcast": "Expand",
    "copy": "Identity",
    "fill": "ConstantOfShape",
    "matmul": "MatMul",
    "max_pool": "MaxPool",
    "mse_loss": "ReduceMean",
    "nll_loss": "Nll",
    "permute": "Transpose",
    "power": "Pow",
    "sign": "Sign",
    "sub": "Sub",
    "top_k": "TopK",
}
_ABSOLUTE = "abs"
_SUMS = ("reduce_mean", "reduce_sum")
_DTYPES = {
    DType.F32: "float32",
    DType.F16: "float16",
    DType.I32: "int32",
    DType.I16: "int16",
    DType.I8: "int8",
    DType.U32: "uint32",
    DType.U8: "uint8",
    DType.BOOL: "bool",
}


@dataclass(frozen=True)
class NamedOp:
    """One result of an op of the forward pass, with the name programs know it by."""

    name: str
    kind: str
    value: str
    op: Op
    type: TensorType


def type_text(kind: TensorType) -> str:
    """A type and shape: `float32(10, 1)`."""
    name = _DTYPES.get(kind.dtype, kind.dtype.value)
    return f"{name}({', '.join(map(str, kind.shape))})"


def name_ops(graph: Graph, loss: str | None, has_scopes: bool = True) -> list[NamedOp]:
    """The results of the forward pass by name; `loss` is the value of the loss."""
    seen: Counter[str] = Counter()
    named: list[NamedOp] = []
    for kind, op, index, value in _results(graph, loss):
        scope = _scope_of(op, has_scopes)
        base = f"{scope}{kind}:{index}"
        name = f"{base}/{seen[base]}" if seen[base] else base
        seen[base] += 1
        named.append(NamedOp(name, kind, value, op, graph.values[value].type))
    return named


def _results(graph: Graph, loss: str | None) -> Iterator[tuple[str, Op, int, str]]:
    """Name of the op, the op, and its results by number."""
    forward = [op for op in graph.ops if op.phase is Phase.FORWARD]
    norms = _norms_of(forward)
    for op in forward:
        if op.kind == _ABSOLUTE and op.outputs[0] in norms.values():
            continue  # a part of the norm that follows
        kind = "L1" if op.name in norms else _op_name(op.kind)
        for index, value in enumerate(op.outputs):
            yield kind, op, index, value
            if value == loss:
                yield "IdentityLoss", op, 0, value


def _norms_of(ops: list[Op]) -> dict[str, str]:
    """Sums of magnitudes: name of the sum -> the magnitudes nobody else reads."""
    readers = Counter(name for op in ops for name in op.inputs)
    magnitudes = {op.outputs[0] for op in ops if op.kind == _ABSOLUTE}
    return {
        op.name: op.inputs[0]
        for op in ops
        if op.kind in _SUMS
        and op.inputs[0] in magnitudes
        and readers[op.inputs[0]] == 1
    }


def _op_name(kind: str) -> str:
    """`reduce_mean` -> `ReduceMean`, unless the table has another name."""
    words = kind.split("_")
    return _OP_NAMES.get(kind) or "".join(word.capitalize() for word in words)


def _scope_of(op: Op, has_scopes: bool) -> str:
    """The modules and name scopes an op is in: `encoder/layer/0/`."""
    path = op.name.rpartition("/")[0]
    if op.module:
        scope = path.removeprefix(op.module)
        path = (op.module.replace(".", "/") if has_scopes else "") + scope
    path = path.strip("/")
    return f"{path}/" if path else ""


def name_tensors(
    traced: TracedStep, lowered: LoweredStep, has_scopes: bool = True
) -> dict[str, Node]:
    """All tensors a step can show, by name."""
    placeholders = traced.graph_module.graph.find_nodes(op="placeholder")
    held = (*traced.parameters, *traced.buffers)
    inputs = placeholders[len(held) :][: traced.num_inputs]
    names = ["input", *(f"input/{number}" for number in range(1, len(inputs)))]
    found = dict(zip(held, placeholders, strict=False))
    found |= dict(zip(names, inputs, strict=False))
    for named in named_ops(traced, lowered, has_scopes):
        if (node := lowered.sources.get(named.value)) is not None:
            found.setdefault(named.name, node)
    gradients = gradient_nodes(traced).items()
    return found | {f"{GRADIENT}{name}": node for name, node in gradients}


def named_ops(
    traced: TracedStep, lowered: LoweredStep, has_scopes: bool = True
) -> list[NamedOp]:
    """The results of a step's forward pass by name."""
    loss = find_loss(traced)
    values = {node: value for value, node in lowered.sources.items()}
    name = None if loss is None else values.get(loss)
    return name_ops(lowered.graph, name, has_scopes)


def tensor_names(
    step: CompiledStep, has_scopes: bool, settings: Iterable[str]
) -> list[str]:
    """All tensors that can be anchored: `settings` name the optimiser's numbers."""
    return [
        *name_tensors(step.traced, step.lowered, has_scopes),
        *(f"{UPDATED}{name}" for name in step.traced.trainable),
        *((FINAL_LOSS_SCALE,) if step.scales_loss else ()),
        *settings,
    ]
