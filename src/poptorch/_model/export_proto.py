"""The captured model as an ONNX file, for POPTORCH_EXPORT_PROTO_FILE.

The forward pass only, with the ops' names of the original's back end; weights are
inputs without values. Text by default; POPTORCH_EXPORT_PROTO_AS_BINARY=1 makes it a
protocol buffer that ONNX tools open.
"""

from __future__ import annotations

import os
from pathlib import Path

from popple.engine.torch.session import CompiledStep

from .._errors import Error
from .._logging import logger
from .._version import __version__
from ..options import Options
from .tensor_names import NamedOp, named_ops

__all__ = ["export_proto"]

_FILE = "POPTORCH_EXPORT_PROTO_FILE"
_AS_BINARY = "POPTORCH_EXPORT_PROTO_AS_BINARY"


def export_proto(step: CompiledStep, options: Options, path: Path) -> None:
    """Write the forward pass of the model to a file, as the environment asked for."""
    is_binary = os.environ.get(_AS_BINARY, "0") not in ("", "0")
    logger.info("Saving the model's prototype to %s", path)
    scopes = options._module_namescope_enabled
    ops = named_ops(step.traced, step.lowered, scopes)
    _write(step, ops, path, is_text=not is_binary)


def _write(
    step: CompiledStep, ops: list[NamedOp], path: Path, *, is_text: bool
) -> None:
    # Few programs ask for the file, so onnx is imported for those alone.
    try:
        from popple.capture.onnx import Node, make_model, write_model
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise Error(
            f"{_FILE} asks for an ONNX file, and the package onnx is not installed. "
            "Install it with pip install 'popple[onnx]', or unset the variable."
        ) from error
    # An op of several results is listed once for each; the first has its name.
    nodes: dict[str, Node] = {}
    for named in ops:
        nodes.setdefault(named.op.name, Node(named.name, named.kind, named.op))
    path.parent.mkdir(parents=True, exist_ok=True)
    graph = step.lowered.graph
    model = make_model(graph, nodes.values(), producer_version=__version__)
    write_model(model, path, is_text=is_text)
