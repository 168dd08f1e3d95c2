"""Host transfers that go on while the IPU computes: which inputs and outputs may.

Marks in the graph say which; `check_overlap` looks at them once the model is traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from .._arguments.structure import flatten_tensors, rebuild
from .._errors import Error, check
from .._tracing.strategies import PipelinedExecution, ShardedExecution
from .._tracing.trace import isRunningOnIpu
from ..enums import OutputMode, OverlapMode
from ..options import Options

if TYPE_CHECKING:
    from popple.capture.torch import TracedStep

__all__ = [
    "check_overlap",
    "overlap_of",
    "set_overlap_for_input",
    "set_overlap_for_output",
]

_INPUT = "overlap_input"
_OUTPUT = "overlap_output"
_INPUT_NAME = "poptorch.set_overlap_for_input"
_OUTPUT_NAME = "poptorch.set_overlap_for_output"
_MIN_IO_TILES = 32


def set_overlap_for_input(input_tensors: Any, mode: OverlapMode) -> Any:
    """The same inputs, sent while the IPU computes as far as `mode` says.

    They must be inputs of the model and used through what is returned only. The
    options must set I/O tiles aside.
    """
    return _marked(input_tensors, mode, _INPUT)


def set_overlap_for_output(output_tensors: Any, mode: OverlapMode) -> Any:
    """The same outputs, sent while the IPU computes as far as `mode` says.

    They must be returned by the model, once each. The options must set I/O tiles
    aside.
    """
    return _marked(output_tensors, mode, _OUTPUT)


def _marked(structure: Any, mode: OverlapMode, kind: str) -> Any:
    check(isinstance(mode, OverlapMode), "mode must be a poptorch.OverlapMode.")
    tensors = flatten_tensors(structure)
    if not tensors:
        raise Error(f"There is no tensor to overlap in {type(structure).__name__}.")
    if not isRunningOnIpu():
        return structure
    from popple.capture.torch import mark

    return rebuild(structure, [mark(tensor, kind, mode.value) for tensor in tensors])


def check_overlap(traced: TracedStep, options: Options) -> None:
    """Refuse marks on what is no input or output, and options that do not go along."""
    inputs = list(_marks(traced, _INPUT))
    outputs = list(_marks(traced, _OUTPUT))
    for node in inputs:
        _check_input(traced, node)
    returned = _returned(traced)
    for node in outputs:
        _check_output(node, returned)
    modes = [node.args[2] for node in (*inputs, *outputs)]
    if any(mode != OverlapMode.NoOverlap.value for mode in modes):
        _check_options(options)


def overlap_of(traced: TracedStep) -> OverlapMode:
    """The furthest overlap that any input or output is marked with."""
    nodes = (*_marks(traced, _INPUT), *_marks(traced, _OUTPUT))
    modes = {str(node.args[2]) for node in nodes}
    found = [mode for mode in OverlapMode if mode.value in modes]
    return found[-1] if found else OverlapMode.NoOverlap


def _marks(traced: TracedStep, kind: str) -> Iterator[Node]:
    found = traced.graph_module.graph.find_nodes(
        op="call_function", target=torch.ops.popple.mark.default
    )
    return (node for node in found if node.args[1] == kind)


def _check_input(traced: TracedStep, node: Node) -> None:
    arguments = traced.graph_module.graph.find_nodes(op="placeholder")
    given = arguments[len(arguments) - traced.num_inputs :]
    source = node.args[0]
    if source not in given:
        raise Error(
            f"{_INPUT_NAME} takes inputs of the model only, and was given another "
            "tensor. Call it first thing in forward."
        )
    assert isinstance(source, Node)
    if len(source.users) > 1:
        number = given.index(source)
        raise Error(
            f"Input {number} of the model is used beside {_INPUT_NAME}. From there on "
            "use only the tensor that it returns."
        )


def _returned(traced: TracedStep) -> list[Any]:
    """What forward returns, node by node; copies made on the way out looked through."""
    results: Any = traced.graph_module.graph.output_node().args[0]
    return [_origin(node) for node in results[: traced.num_outputs]]


def _origin(node: Any) -> Any:
    while isinstance(node, Node) and node.target is torch.ops.aten.detach.default:
        node = node.args[0]
    return node


def _check_output(node: Node, returned: list[Any]) -> None:
    if node not in returned:
        raise Error(
            f"{_OUTPUT_NAME} takes outputs of the model only, and what it returned is "
            "not returned by forward. Call it last thing in forward."
        )
    same = [other for other in returned if other in (node, _origin(node.args[0]))]
    if len(same) > 1:
        raise Error(
            f"A tensor given to {_OUTPUT_NAME} is returned twice. Return only what it "
            "returned, and only once; look into tuples and lists too."
        )


def _check_options(options: Options) -> None:
    strategy = options._execution_strategy
    is_sharded = isinstance(strategy, ShardedExecution)
    if isinstance(strategy, PipelinedExecution) and not is_sharded:
        raise Error(
            "Host transfers cannot overlap with poptorch.PipelinedExecution. On one "
            "IPU use poptorch.ShardedExecution."
        )
    if options.TensorLocations._values.get("numIOTiles", 0) < _MIN_IO_TILES:
        raise Error(
            "Overlapping host transfers needs I/O tiles, and none are set aside. Set "
            f"at least {_MIN_IO_TILES} with "
            "poptorch.Options().TensorLocations.numIOTiles."
        )
    if options.output_mode not in (OutputMode.All, OutputMode.Sum):
        raise Error(
            "Overlapping host transfers needs the output mode All or Sum, not "
            f"{options.output_mode.name}: poptorch.Options().outputMode(...)."
        )
