"""What can only be checked once a model is traced: its stages and its buffers."""

from __future__ import annotations

import torch

from popple.capture.torch import overwritten_arguments

from ._compile import CompiledStep
from ._errors import Error
from ._strategies import PipelinedExecution, ShardedExecution
from .options import Options

__all__ = ["check_buffers", "check_pipeline"]


def check_pipeline(step: CompiledStep, options: Options, training: bool) -> None:
    """A pipeline needs a micro-batch for every stage."""
    strategy = options._execution_strategy
    is_pipelined = isinstance(strategy, PipelinedExecution)
    if not is_pipelined or isinstance(strategy, ShardedExecution) or step.num_ipus == 1:
        return
    stages = step.num_stages
    if training:
        needed = 2 * stages - 1
        given = options.Training.gradient_accumulation
        if given < needed:
            raise Error(
                f"A pipeline of {stages} forward stages has {needed} stages in training "
                f"and needs as many micro-batches per update, but gradientAccumulation "
                f"is {given}. Set Options().Training.gradientAccumulation({needed}) or "
                "more, or use poptorch.ShardedExecution."
            )
    elif options.device_iterations < stages:
        raise Error(
            f"poptorch.Options().deviceIterations must be greater than or equal to the "
            f"number of pipeline stages ({stages}), but is "
            f"{options.device_iterations}."
        )


def check_buffers(step: CompiledStep, options: Options) -> None:
    """Replicas that share buffers must not change them."""
    if not options.broadcast_buffers:
        return
    if options.replication_factor <= options.input_group_size:
        return
    traced = step.traced
    arguments = (*traced.parameters, *traced.buffers)
    for index in overwritten_arguments(traced.graph_module):
        if len(traced.parameters) <= index < len(arguments):
            name = arguments[index]
            node = list(traced.graph_module.graph.nodes)[index]
            if _is_float(node.meta["val"]):
                raise Error(
                    f"Buffer {name} is changed in forward, but with replicationFactor "
                    f"{options.replication_factor} all replicas share one copy. Give "
                    "each its own with poptorch.Options().broadcastBuffers(False)."
                )


def _is_float(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()
