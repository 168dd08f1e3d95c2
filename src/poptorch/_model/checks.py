"""What can only be checked once a model is traced: its stages and its buffers."""

from __future__ import annotations

from collections.abc import Iterator

from popple.capture.torch import overwritten_arguments
from popple.engine.torch.session.step import CompiledStep
from popple.errors import PlacementError, suggest
from popple.graph import Strategy

from .. import _translate as translate
from .._errors import Error
from ..options import Options

__all__ = ["check_buffers", "check_named_buffers", "check_pipeline"]


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
    """Replicas that share buffers must not change them."""
    replicas = options.replication_factor
    if not options.broadcast_buffers or replicas <= options.input_group_size:
        return
    for name in _changed_buffers(step):
        raise Error(
            f"Buffer {name} is changed in forward, but with replicationFactor "
            f"{replicas} all replicas share one copy. Give each its own with "
            "poptorch.Options().broadcastBuffers(False)."
        )


def _changed_buffers(step: CompiledStep) -> Iterator[str]:
    """Names of the floating-point buffers that forward writes to."""
    traced = step.traced
    nodes = traced.graph_module.graph.find_nodes(op="placeholder")
    names = dict(enumerate(traced.buffers, start=len(traced.parameters)))
    for index in overwritten_arguments(traced.graph_module):
        if index in names and nodes[index].meta["val"].is_floating_point():
            yield names[index]


def check_named_buffers(step: CompiledStep, options: Options) -> None:
    """Buffers to be sent by name must be there."""
    known = step.traced.buffers
    for name in options._Popart.options.get("updatableNamedBuffers") or ():
        if name not in known:
            raise Error(
                f"updatableNamedBuffers names {name!r}, which is no buffer of the "
                f"model. {suggest(name, known)}"
            )
