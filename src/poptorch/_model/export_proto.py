"""The captured model as an ONNX file, for POPTORCH_EXPORT_PROTO_FILE.

The forward pass only, with the ops' names of the original's back end; weights are
inputs without values. Text by default; POPTORCH_EXPORT_PROTO_AS_BINARY=1 makes it a
protocol buffer that ONNX tools open.

Both forms are written here, without the onnx package: a program that is being debugged
should not need another one, and names, shapes and edges are all there is to write.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from popple.engine.torch.session import CompiledStep
from popple.graph import DType, Graph, Role, TensorType, Value

from .._logging import logger
from .._version import __version__
from ..options import Options
from .tensor_names import NamedOp, named_ops

__all__ = ["export_proto", "render_binary", "render_text"]

_IR_VERSION = 8
_OPSET = 13
_DOMAIN = "ai.graphcore"
_ELEMENT_TYPES = {
    DType.F32: 1,
    DType.U8: 2,
    DType.I8: 3,
    DType.I16: 5,
    DType.I32: 6,
    DType.BOOL: 9,
    DType.F16: 10,
    DType.U32: 12,
    DType.BF16: 16,
    DType.F8: 17,
}


class Field(NamedTuple):
    """A field of a protocol buffer: its number and name, and what is in it."""

    number: int
    name: str
    value: int | str | list[Field]


Message = list[Field]


def export_proto(step: CompiledStep, options: Options) -> None:
    """Write the model where the environment says, if it does."""
    name = os.environ.get("POPTORCH_EXPORT_PROTO_FILE")
    if not name:
        return
    is_binary = os.environ.get("POPTORCH_EXPORT_PROTO_AS_BINARY", "0") not in ("", "0")
    scopes = options._module_namescope_enabled
    model = _model(step, named_ops(step.traced, step.lowered, scopes))
    data = render_binary(model) if is_binary else render_text(model).encode()
    logger.info("Saving the model's prototype to %s", name)
    _write(Path(name), data)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(name, path)


def _model(step: CompiledStep, ops: list[NamedOp]) -> Message:
    operators = [Field(1, "domain", _DOMAIN), Field(2, "version", 1)]
    return [
        Field(1, "ir_version", _IR_VERSION),
        Field(2, "producer_name", "popple"),
        Field(3, "producer_version", __version__),
        Field(7, "graph", _graph(step.lowered.graph, ops)),
        Field(8, "opset_import", [Field(2, "version", _OPSET)]),
        Field(8, "opset_import", operators),
    ]


def _graph(graph: Graph, ops: list[NamedOp]) -> Message:
    nodes: dict[str, Message] = {}
    for named in ops:
        node = nodes.setdefault(named.op.name, [])
        if not node:
            node += [Field(1, "input", name) for name in named.op.inputs]
            node += [Field(2, "output", name) for name in named.op.outputs]
            node += [
                Field(3, "name", named.name),
                Field(4, "op_type", named.kind),
                Field(7, "domain", _DOMAIN),
            ]
    return [
        *(Field(1, "node", node) for node in nodes.values()),
        Field(2, "name", graph.name),
        *(Field(11, "input", _value_info(value)) for value in _given(graph)),
        *(Field(12, "output", _value_info(graph.values[n])) for n in graph.outputs),
    ]


def _given(graph: Graph) -> Iterator[Value]:
    return (v for v in graph.values.values() if v.role is not Role.ACTIVATION)


def _value_info(value: Value) -> Message:
    tensor = Field(1, "tensor_type", _tensor_type(value.type))
    return [Field(1, "name", value.name), Field(2, "type", [tensor])]


def _tensor_type(kind: TensorType) -> Message:
    sizes = [Field(1, "dim", [Field(1, "dim_value", size)]) for size in kind.shape]
    return [
        Field(1, "elem_type", _ELEMENT_TYPES[kind.dtype]),
        Field(2, "shape", sizes),
    ]


def render_text(message: Message, indent: str = "") -> str:
    """A message in the text format of protocol buffers."""
    lines: list[str] = []
    for field in message:
        if isinstance(field.value, list):
            body = render_text(field.value, f"{indent}  ")
            lines.append(f"{indent}{field.name} {{\n{body}{indent}}}\n")
        elif isinstance(field.value, int):
            lines.append(f"{indent}{field.name}: {field.value}\n")
        else:
            text = field.value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'{indent}{field.name}: "{text}"\n')
    return "".join(lines)


def render_binary(message: Message) -> bytes:
    """A message in the wire format of protocol buffers."""
    return b"".join(_render_field(field) for field in message)


def _render_field(field: Field) -> bytes:
    if isinstance(field.value, int):
        return _varint(field.number << 3) + _varint(field.value)
    value = field.value
    data = value.encode() if isinstance(value, str) else render_binary(value)
    return _varint(field.number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Seven bits per byte, lowest first; the top bit says that more follow."""
    return bytes(_varint_bytes(number))


def _varint_bytes(number: int) -> Iterable[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number
