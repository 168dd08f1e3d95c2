"""What can only be checked once a model is traced: stages, buffers, overlapped I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from popple.capture.torch import TracedStep, overwritten_arguments
from popple.engine.torch.session.step import CompiledStep
from popple.errors import PlacementError, suggest
from popple.graph import Strategy

from .. import _translate as translate
from .._errors import Error
from .._ops.overlap import INPUT_MARK, OUTPUT_MARK
from .._tracing.strategies import PipelinedExecution, ShardedExecution
from ..enums import OutputMode, OverlapMode
from ..options import Options

__all__ = [
    "check_buffers",
    "check_named_buffers",
    "check_overlap",
    "check_pipeline",
    "num_buffer_sets",
    "overlap_of",
]

_INPUT_NAME = "poptorch.set_overlap_for_input"
_OUTPUT_NAME = "poptorch.set_overlap_for_output"
_MIN_IO_TILES = 32
_BATCH_NORM = torch.ops.aten.native_batch_norm.default


def check_pipeline(step: CompiledStep, options: Options, training: bool) -> None:
    """Data of a pipeline flows forward, and it has a micro-batch for every stage."""
    strategy = translate.core_strategy(options)
    if strategy is not Strategy.PIPELINED or step.num_chips == 1:
        return
    _check_stage_order(step)
    stages = step.num_stages
    if training:
        _check_accumulation(stages, options.Training.gradient_accumulation)
    elif options.device_iterations < stages:
        raise Error(
            f"poptorch.Options().deviceIterations must be greater than or equal to the "
            f"number of pipeline stages ({stages}), but is "
            f"{options.device_iterations}."
        )


def _check_stage_order(step: CompiledStep) -> None:
    from popple.place import number_stages  # programs on one IPU do without

    try:
        number_stages(step.lowered.graph)
    except PlacementError as error:
        raise Error(str(error)) from error


def _check_accumulation(stages: int, given: int) -> None:
    needed = 2 * stages - 1
    if given < needed:
        raise Error(
            f"A pipeline of {stages} forward stages has {needed} stages in training "
            f"and needs as many micro-batches per update, but gradientAccumulation "
            f"is {given}. Set Options().Training.gradientAccumulation({needed}) or "
            "more, or use poptorch.ShardedExecution."
        )


def check_buffers(step: CompiledStep, options: Options) -> None:
    """Replicas that share buffers must not change them; batch norms may."""
    replicas = options.replication_factor
    if not options.broadcast_buffers or replicas <= options.input_group_size:
        return
    for name in _changed_buffers(step):
        raise Error(
            f"Buffer {name} is changed in forward, but with replicationFactor "
            f"{replicas} all replicas share one copy. Give each its own with "
            "poptorch.Options().broadcastBuffers(False)."
        )


def num_buffer_sets(step: CompiledStep, options: Options) -> int:
    """Copies of the buffers: one for all replicas, or one for each.

    Statistics of batch norms differ between replicas whatever the options say; the
    host is given those of the first.
    """
    if options.replication_factor == 1:
        return 1
    has_statistics = bool(_batch_statistics(step.traced.graph_module.graph))
    is_shared = options.broadcast_buffers and not has_statistics
    return 1 if is_shared else options.replication_factor


def _changed_buffers(step: CompiledStep) -> Iterator[str]:
    """Names of the floating-point buffers that forward itself writes to."""
    traced = step.traced
    nodes = traced.graph_module.graph.find_nodes(op="placeholder")
    names = dict(enumerate(traced.buffers, start=len(traced.parameters)))
    statistics = _batch_statistics(traced.graph_module.graph)
    for index in overwritten_arguments(traced.graph_module):
        node = nodes[index]
        is_float = index in names and node.meta["val"].is_floating_point()
        if is_float and node not in statistics:
            yield names[index]


def _batch_statistics(graph: Graph) -> set[Node]:
    """Running means and variances that batch norms keep up to date."""
    return {
        argument
        for node in graph.find_nodes(op="call_function", target=_BATCH_NORM)
        for argument in node.args[3:5]
        if isinstance(argument, Node)
    }


def check_named_buffers(step: CompiledStep, options: Options) -> None:
    """Buffers to be sent by name must be there."""
    known = step.traced.buffers
    for name in options._Popart.options.get("updatableNamedBuffers") or ():
        if name not in known:
            raise Error(
                f"updatableNamedBuffers names {name!r}, which is no buffer of the "
                f"model. {suggest(name, known)}"
            )


def check_overlap(traced: TracedStep, options: Options) -> None:
    """Refuse marks on what is no input or output, and options that do not go along."""
    inputs = list(_marks(traced, INPUT_MARK))
    outputs = list(_marks(traced, OUTPUT_MARK))
    for node in inputs:
        _check_input(traced, node)
    returned = _returned(traced)
    for node in outputs:
        _check_output(node, returned)
    modes = [node.args[2] for node in (*inputs, *outputs)]
    if any(mode != OverlapMode.NoOverlap.value for mode in modes):
        _check_overlap_options(options)


def overlap_of(traced: TracedStep) -> OverlapMode:
    """The furthest overlap that any input or output is marked with."""
    nodes = (*_marks(traced, INPUT_MARK), *_marks(traced, OUTPUT_MARK))
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


def _check_overlap_options(options: Options) -> None:
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
