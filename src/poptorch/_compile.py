"""Compilation: a wrapped module and its first arguments become a CompiledStep.

arguments --trace--> TracedStep --lower--> Graph          for the model of costs
                         `------replay--> engine          for the numbers
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import torch
from torch import nn
from torch.fx import GraphModule, Node

from popple.capture.torch import (
    LoweredStep,
    LowerRequest,
    TracedStep,
    TraceRequest,
    constant_outputs,
    expose,
    find_overwritten,
    is_random,
    lower_step,
    trace_step,
    with_gradient_counts,
)
from popple.engine.torch import (
    Arithmetic,
    AutomaticScaling,
    Numerics,
    Outbox,
    Replay,
    build_replay,
    function_maker,
    with_outbox,
)
from popple.errors import CaptureError
from popple.graph import Phase

from ._arguments.args import BoundArgs
from ._arguments.outputs import output_tensors
from ._arguments.structure import flatten_tensors
from ._backend import REPLAY, Backend
from ._batching import BatchPlan
from ._errors import Error
from ._model.tensor_names import NamedOp, name_tensors, named_ops
from ._trace_rules import trace_rules
from ._tracing.blocks import active_trace
from ._tracing.extensions import extended_tracing
from ._tracing.strategies import _IExecutionStrategy
from ._tracing.trace import FIRST_PLACE, BlockPlaces, place_of, tracing

__all__ = ["CompileRequest", "CompiledStep", "compile_step", "to_device_type"]

_LOSS_SCALE = "lossScaling_FLOAT"
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
    """A module to compile for these arguments; `trainable` is None for inference.

    `anchors` are names of tensors the program wants to see. Names of ops begin with
    the modules they are in if `has_scopes`. Parameters that are `grouped` have a first
    dimension with one entry per group of replicas. With `scales_loss` the step takes a
    loss scale; `automatic` says how that adapts itself, if it does. With
    `has_strided_groups`, group normalisation strides over channels.
    """

    name: str
    module: nn.Module
    arguments: BoundArgs
    batch_plan: BatchPlan
    strategy: _IExecutionStrategy
    trainable: tuple[str, ...] | None
    backend: Backend = REPLAY
    anchors: tuple[str, ...] = ()
    has_scopes: bool = True
    grouped: frozenset[str] = frozenset()
    scales_loss: bool = False
    automatic: AutomaticScaling | None = None
    has_strided_groups: bool = False
    numerics: Numerics = field(default_factory=Numerics)


@dataclass(frozen=True)
class CompiledStep:
    """A step that can be run and modelled.

    `exposed` are the names of the tensors that its replay returns besides the outputs,
    right behind them. With `scales_loss` the replay takes a loss scale at the end. An
    `outbox` is where it leaves its outputs for the host, if it does.
    """

    traced: TracedStep
    lowered: LoweredStep
    replay: Replay
    micro_batch: int
    backend: Backend = REPLAY
    exposed: tuple[str, ...] = ()
    has_scopes: bool = True
    scales_loss: bool = False
    arithmetic: Arithmetic | None = None
    outbox: Outbox | None = None

    @cached_property
    def num_stages(self) -> int:
        """Forward stages: a new one with every change of IPU, beginning on IPU 0."""
        ops = self.lowered.graph.ops
        ipus = [0, *(op.chip for op in ops if op.phase is Phase.FORWARD)]
        return 1 + sum(a != b for a, b in pairwise(ipus))

    @cached_property
    def num_ipus(self) -> int:
        """IPUs of one replica: up to the highest one in use."""
        return self.lowered.graph.execution.num_chips

    @cached_property
    def draws_random_numbers(self) -> bool:
        """Whether a run draws from the device's random numbers."""
        return any(map(is_random, self.traced.graph_module.graph.nodes))

    @cached_property
    def constant_outputs(self) -> frozenset[int]:
        """Numbers of the outputs that are compiled in."""
        return constant_outputs(self.traced)

    @cached_property
    def ops(self) -> list[NamedOp]:
        """The results of the forward pass by name."""
        return named_ops(self.traced, self.lowered, self.has_scopes)

    @cached_property
    def tensors(self) -> list[str]:
        """Names of the tensors inside the step."""
        return list(name_tensors(self.traced, self.lowered, self.has_scopes))


def compile_step(
    request: CompileRequest, progress: Callable[[str], None]
) -> CompiledStep:
    """Trace, lower and prepare one micro-batch of the module."""
    backend = request.backend
    tensors = [backend.place(to_device_type(t)) for t in request.arguments.tensors()]
    sizes = [request.batch_plan.micro_batch_size(t) for t in tensors]
    examples = [
        t if t.dim() == 0 else t[:size] for t, size in zip(tensors, sizes, strict=True)
    ]
    progress("tracing")
    traced = _trace(request, examples)
    progress("lowering")
    names = _input_names(request.arguments, len(examples))
    names += [_LOSS_SCALE] if request.scales_loss else []
    lowered = lower_step(LowerRequest(request.name, traced, names, place_of))
    progress("preparing")
    shown = _find_anchors(request, traced, lowered)
    run = expose(traced, list(shown.values()))
    module = run.graph_module
    if request.automatic is not None:
        module = with_gradient_counts(module, request.automatic.large)
    module, outbox = _send_early(request, module, traced.num_outputs)
    arithmetic = _arithmetic(request)
    constants = _overwritten_constants(run)
    make_function = function_maker(backend.name)
    replay = build_replay(module, constants, arithmetic, make_function)
    return CompiledStep(
        traced=traced,
        lowered=lowered,
        replay=replay,
        micro_batch=max(sizes, default=1),
        backend=backend,
        exposed=tuple(shown),
        has_scopes=request.has_scopes,
        scales_loss=request.scales_loss,
        arithmetic=arithmetic,
        outbox=outbox,
    )


def _send_early(
    request: CompileRequest, module: GraphModule, num_outputs: int
) -> tuple[GraphModule, Outbox | None]:
    """On a GPU, let the outputs of a call leave while the rest of it goes on.

    Only where a call is one micro-batch: the outputs of several are put together.
    """
    is_single = request.batch_plan.num_micro_batches == 1 and not request.anchors
    if request.backend.device != "cuda" or not is_single:
        return module, None
    return with_outbox(module, num_outputs, request.backend.device)


def _find_anchors(
    request: CompileRequest, traced: TracedStep, lowered: LoweredStep
) -> dict[str, Node]:
    """Where in the step the tensors are that the program wants to see."""
    if not request.anchors:
        return {}
    tensors = name_tensors(traced, lowered, request.has_scopes)
    return {name: tensors[name] for name in request.anchors if name in tensors}


def _arithmetic(request: CompileRequest) -> Arithmetic | None:
    """The machine's arithmetic, or None for that of the host."""
    if request.numerics.is_plain:
        return None
    if not request.backend.is_default:
        raise Error(
            "Stochastic rounding and POPPLE_NUMERICS need the replay backend on the "
            f"CPU, not {request.backend.name} on {request.backend.device}. Switch one "
            "of them off."
        )
    return Arithmetic(request.numerics)


def _overwritten_constants(traced: TracedStep) -> list[Node]:
    """What forward writes to though it is compiled in.

    Constants are tensors that are neither parameter nor buffer nor input, and
    integer parameters and buffers.
    """
    held = len(traced.parameters) + len(traced.buffers)
    placeholders = traced.graph_module.graph.find_nodes(op="placeholder")
    inputs = set(placeholders[held:])
    return [
        node
        for node in find_overwritten(traced.graph_module)
        if node not in inputs and not _is_variable(node)
    ]


def _is_variable(node: Node) -> bool:
    return node.op == "placeholder" and node.meta["val"].is_floating_point()


def _trace(request: CompileRequest, examples: Sequence[torch.Tensor]) -> TracedStep:
    module = request.module
    backend = request.backend
    rules = trace_rules(request.has_strided_groups)
    with tracing(), extended_tracing(), backend.tracing(), rules:
        try:
            return trace_step(
                TraceRequest(
                    module=module,
                    bind=lambda tensors: _call_arguments(request.arguments, tensors),
                    parameters=_plain(_one_group(request), backend),
                    buffers=_plain(module.named_buffers(), backend),
                    inputs=examples,
                    trainable=request.trainable,
                    scales_loss=request.scales_loss,
                    default_block=FIRST_PLACE,
                    listener=lambda trace: active_trace.set(
                        BlockPlaces(request.strategy, trace)
                    ),
                    flatten=output_tensors,
                    constants=_known_numbers(module),
                )
            )
        except CaptureError as error:
            raise Error(str(error)) from error


def _one_group(request: CompileRequest) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters as one replica sees them."""
    for name, parameter in request.module.named_parameters():
        yield name, parameter[0] if name in request.grouped else parameter


def _call_arguments(
    bound: BoundArgs, tensors: Sequence[torch.Tensor]
) -> tuple[tuple[object, ...], dict[str, object]]:
    rebuilt = bound.rebuild(tensors)
    return rebuilt.args, rebuilt.kwargs


def _plain(
    named: Iterable[tuple[str, torch.Tensor]], backend: Backend
) -> dict[str, torch.Tensor]:
    """Tensors without the wrapper class, in a type the device has."""
    return {
        name: backend.place(to_device_type(tensor.detach())) for name, tensor in named
    }


def _known_numbers(module: nn.Module) -> dict[str, torch.Tensor]:
    """Integer parameters and buffers are compiled in, so their values are known."""
    named = (*module.named_parameters(), *module.named_buffers())
    return {
        name: tensor.detach().clone()
        for name, tensor in named
        if tensor.numel() == 1 and not tensor.is_floating_point()
    }


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
