"""Compilation: a wrapped module and its first arguments become a CompiledModel.

    arguments --trace--> TracedStep --lower--> Graph          for the model of costs
                             `------replay--> engine          for the numbers
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from popple.capture.torch import (
    LoweredStep,
    LowerRequest,
    TracedStep,
    TraceRequest,
    lower_step,
    trace_step,
)
from popple.engine.torch import Replay, build_replay
from popple.errors import CaptureError

from ._args import BoundArgs
from ._batching import BatchPlan
from ._blocks import active_trace
from ._errors import Error
from ._strategies import _IExecutionStrategy
from ._structure import flatten_tensors
from ._trace import BlockPlaces, place_of, tracing

__all__ = ["CompiledStep", "CompileRequest", "compile_step", "to_device_type"]

_ON_DEVICE = {torch.float64: torch.float32, torch.bfloat16: torch.float32}


def to_device_type(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in a floating-point type the device has.

    Integers keep 64 bits while they run: their values are the same, and operators of
    PyTorch ask for them. They come back with 32.
    """
    dtype = _ON_DEVICE.get(tensor.dtype)
    return tensor if dtype is None else tensor.to(dtype)


@dataclass(frozen=True)
class CompileRequest:
    """A module to compile for these arguments; `trainable` is None for inference."""

    name: str
    module: nn.Module
    arguments: BoundArgs
    batch_plan: BatchPlan
    strategy: _IExecutionStrategy
    trainable: tuple[str, ...] | None


@dataclass(frozen=True)
class CompiledStep:
    """A step that can be run and modelled."""

    traced: TracedStep
    lowered: LoweredStep
    replay: Replay
    micro_batch: int

    @property
    def num_stages(self) -> int:
        """Forward stages."""
        return 1 + max((op.stage for op in self.lowered.graph.ops), default=0)

    @property
    def num_ipus(self) -> int:
        """IPUs of one replica: up to the highest one in use."""
        return 1 + max((op.chip for op in self.lowered.graph.ops), default=0)

    @property
    def draws_random_numbers(self) -> bool:
        """Whether a run draws from the device's random numbers."""
        return any(
            torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
            for node in self.traced.graph_module.graph.nodes
        )


def compile_step(
    request: CompileRequest, progress: Callable[[str], None]
) -> CompiledStep:
    """Trace, lower and prepare one micro-batch of the module."""
    tensors = [to_device_type(t) for t in request.arguments.tensors()]
    sizes = [request.batch_plan.micro_batch_size(t) for t in tensors]
    examples = [t if t.dim() == 0 else t[:size] for t, size in zip(tensors, sizes)]
    progress("tracing")
    traced = _trace(request, examples)
    progress("lowering")
    names = _input_names(request.arguments, len(examples))
    lowered = lower_step(LowerRequest(request.name, traced, names, place_of))
    progress("preparing")
    replay = build_replay(traced.graph_module)
    return CompiledStep(traced, lowered, replay, max(sizes, default=1))


def _trace(request: CompileRequest, examples: Sequence[torch.Tensor]) -> TracedStep:
    module = request.module
    with tracing():
        try:
            return trace_step(
                TraceRequest(
                    module=module,
                    bind=lambda tensors: _call_arguments(request.arguments, tensors),
                    parameters=_plain(module.named_parameters()),
                    buffers=_plain(module.named_buffers()),
                    inputs=examples,
                    trainable=request.trainable,
                    listener=lambda trace: active_trace.set(
                        BlockPlaces(request.strategy, trace)
                    ),
                    flatten=flatten_tensors,
                )
            )
        except CaptureError as error:
            raise Error(str(error)) from error


def _call_arguments(
    bound: BoundArgs, tensors: Sequence[torch.Tensor]
) -> tuple[tuple[object, ...], dict[str, object]]:
    rebuilt = bound.rebuild(tensors)
    return rebuilt.args, rebuilt.kwargs


def _plain(named: Iterable[tuple[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Tensors without the wrapper class, in a type the device has."""
    return {name: to_device_type(tensor.detach()) for name, tensor in named}


def _input_names(bound: BoundArgs, count: int) -> list[str]:
    """Names of the input tensors: the argument's, numbered if it holds several."""
    names: list[str] = []
    pairs = [*zip(bound.arg_names, bound.args, strict=True), *bound.kwargs.items()]
    for name, value in pairs:
        tensors = len(flatten_tensors(value))
        if tensors == 1:
            names.append(name)
        else:
            names += [f"{name}.{index}" for index in range(tensors)]
    assert len(names) == count
    return names
