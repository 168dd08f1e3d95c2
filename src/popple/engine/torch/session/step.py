"""Compile a step: one micro-batch of a PyTorch module, traced, lowered and replayed.

arguments --trace--> TracedStep --lower--> Graph          for the model of costs
                         `------replay--> engine          for the numbers
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node

from popple.capture.torch import (
    Forward,
    LoweredStep,
    LowerRequest,
    TracedStep,
    TraceRequest,
    all_nodes,
    constant_outputs,
    find_overwritten,
    is_random,
    lower_step,
    trace_step,
)
from popple.engine.torch.backends import REPLAY, Backend, function_maker
from popple.engine.torch.numerics import Arithmetic, Numerics
from popple.engine.torch.replay import Replay, build_replay
from popple.engine.torch.rewrites.exposed import expose
from popple.engine.torch.rewrites.gradient_counts import with_gradient_counts
from popple.engine.torch.rewrites.outbox import Outbox, with_outbox
from popple.engine.torch.updates.loss_scale import AutomaticScaling
from popple.errors import UsageError
from popple.graph import Graph as CoreGraph
from popple.graph import Phase, batch_of
from popple.pipeline import capture_program
from popple.session import BatchPlan

# The name under which PopART knows the loss scale, and reports show it.
_LOSS_SCALE = "lossScaling_FLOAT"
_LOG = logging.getLogger(__name__)
_WIDENED = (
    "The model has tensors in bfloat16, which the machine does not have: they are "
    "computed in float32. A GPU keeps them if asked to: "
    "popple run --device cuda --keep-bfloat16."
)


@dataclass(frozen=True)
class StepRequest:
    """A module to compile for the tensors of its first call.

    `forward` is the front end's side of the trace. `trainable` is None for inference.
    Parameters that are `grouped` have a first dimension with one entry per group of
    replicas. With `scales_loss` the step takes a loss scale; `automatic` says how that
    adapts itself, if it does. With `has_strided_groups`, group normalisation strides
    over channels. `numerics` is the machine's arithmetic, None for that of the host.
    """

    name: str
    module: nn.Module
    forward: Forward
    inputs: Sequence[Tensor]
    input_names: Sequence[str]
    batch_plan: BatchPlan
    trainable: tuple[str, ...] | None
    backend: Backend = REPLAY
    grouped: frozenset[str] = frozenset()
    scales_loss: bool = False
    automatic: AutomaticScaling | None = None
    has_strided_groups: bool = False
    numerics: Numerics | None = None


@dataclass(frozen=True)
class StepFacts:
    """What has to be known of a step to run it: names, counts, the form of its output.

    `gradients` are the parameters that the loss depends on. `num_stages` are forward
    stages: a new one with every change of chip, beginning on chip 0. `num_chips` go up
    to the highest one in use. `constant_outputs` are the numbers of the outputs that
    are compiled in, `example` is what forward returned, for its structure.
    """

    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    trainable: tuple[str, ...]
    gradients: tuple[str, ...]
    num_inputs: int
    num_outputs: int
    num_stages: int
    num_chips: int
    draws_random_numbers: bool
    constant_outputs: frozenset[int]
    example: Any


class Capture(Protocol):
    """What was captured of a program, whether just now or in an earlier run."""

    @property
    def facts(self) -> StepFacts:
        """What has to be known to run it."""
        ...

    @property
    def traced(self) -> TracedStep:
        """The operators of one micro-batch."""
        ...

    @property
    def lowered(self) -> LoweredStep:
        """Its Graph."""
        ...

    @property
    def replay(self) -> Replay | None:
        """What runs it, if that was kept."""
        ...


@dataclass(frozen=True)
class FreshCapture:
    """A program that was captured just now."""

    traced: TracedStep
    lowered: LoweredStep
    replay: Replay | None = None

    @property
    def facts(self) -> StepFacts:
        """What has to be known to run it."""
        return self._facts

    @cached_property
    def _facts(self) -> StepFacts:
        traced, graph = self.traced, self.lowered.graph
        return StepFacts(
            parameters=traced.parameters,
            buffers=traced.buffers,
            trainable=traced.trainable,
            gradients=tuple(self.lowered.gradients),
            num_inputs=traced.num_inputs,
            num_outputs=traced.num_outputs,
            num_stages=_count_stages(graph),
            num_chips=graph.execution.num_chips,
            draws_random_numbers=any(
                map(is_random, all_nodes(traced.graph_module.graph))
            ),
            constant_outputs=constant_outputs(traced),
            example=traced.example,
        )


def _count_stages(graph: CoreGraph) -> int:
    # A stage ends where the chip changes; coming back to a chip is a new stage.
    chips = [0, *(op.chip for op in graph.ops if op.phase is Phase.FORWARD)]
    return 1 + sum(a != b for a, b in pairwise(chips))


@dataclass(frozen=True)
class CompiledStep:
    """A step that can be run and modelled.

    `exposed` are tensors inside the step, by the names they are asked for: its replay
    returns them right behind the outputs. What it takes to run is made when it is
    first asked for.
    """

    request: StepRequest
    capture: Capture
    micro_batch: int
    exposed: Mapping[str, Node] = field(default_factory=dict[str, Node])

    def with_exposed(self, nodes: Mapping[str, Node]) -> CompiledStep:
        """A step that also returns the values of these nodes."""
        return replace(self, exposed=nodes)

    @property
    def facts(self) -> StepFacts:
        """What has to be known to run it."""
        return self.capture.facts

    @property
    def traced(self) -> TracedStep:
        """The operators of one micro-batch."""
        return self.capture.traced

    @property
    def lowered(self) -> LoweredStep:
        """Its Graph."""
        return self.capture.lowered

    @property
    def backend(self) -> Backend:
        """How and where the step is executed."""
        return self.request.backend

    @property
    def scales_loss(self) -> bool:
        """Whether the step takes a loss scale, behind its other arguments."""
        return self.request.scales_loss

    @property
    def num_results(self) -> int:
        """Outputs and exposed tensors; gradients come after them."""
        return self.facts.num_outputs + len(self.exposed)

    @property
    def num_stages(self) -> int:
        """Forward stages."""
        return self.facts.num_stages

    @property
    def num_chips(self) -> int:
        """Chips of one replica."""
        return self.facts.num_chips

    @property
    def draws_random_numbers(self) -> bool:
        """Whether a run draws from the device's random numbers."""
        return self.facts.draws_random_numbers

    @property
    def constant_outputs(self) -> frozenset[int]:
        """Numbers of the outputs that are compiled in."""
        return self.facts.constant_outputs

    @cached_property
    def arithmetic(self) -> Arithmetic | None:
        """The machine's arithmetic, or None for that of the host."""
        numerics = self.request.numerics
        if numerics is None or numerics.is_plain:
            return None
        if not self.backend.is_default:
            raise UsageError(
                "Stochastic rounding and POPPLE_NUMERICS need the replay backend on "
                f"the CPU, not {self.backend.name} on {self.backend.device}.",
                remedy="Switch one of them off.",
            )
        return Arithmetic(numerics)

    def zero_results(self) -> list[Tensor]:
        """Zeros in the types and shapes of the outputs and exposed tensors."""
        traced = self.traced
        returned = traced.graph_module.graph.output_node().args[0]
        assert isinstance(returned, Sequence)
        nodes = [*returned[: traced.num_outputs], *self.exposed.values()]
        # A result may be a tensor of the step itself, which has no node.
        values = [n.meta["val"] if isinstance(n, Node) else n for n in nodes]
        return [torch.zeros(v.shape, dtype=v.dtype) for v in values]

    @property
    def replay(self) -> Replay:
        """What runs the step."""
        return self._prepared[0]

    @property
    def outbox(self) -> Outbox | None:
        """Where the step leaves its outputs for the host before it ends, if it does."""
        return self._prepared[1]

    @property
    def has_plain_replay(self) -> bool:
        """Whether the replay is the traced operators and nothing of this process."""
        is_plain = self.backend.is_default and self.arithmetic is None
        return is_plain and not self.exposed

    @cached_property
    def _prepared(self) -> tuple[Replay, Outbox | None]:
        kept = self.capture.replay if self.has_plain_replay else None
        if kept is not None:
            return kept, None
        run = self.traced
        if self.exposed:
            run = expose(run, list(self.exposed.values()))
        module, automatic = run.graph_module, self.request.automatic
        if automatic is not None:
            module = with_gradient_counts(module, automatic.large)
        # Exposed values are added before outputs are sent: both change what is
        # returned.
        module, outbox = self._send_early(module)
        constants = _overwritten_constants(run)
        replay = build_replay(
            module,
            constants,
            self.arithmetic,
            function_maker(self.backend.name),
            num_weights=len(self.facts.parameters),
        )
        return replay, outbox

    def _send_early(self, module: GraphModule) -> tuple[GraphModule, Outbox | None]:
        """On a GPU, let the outputs of a call leave while the rest of it goes on.

        Only where a call is one micro-batch: the outputs of several are put together.
        """
        is_single = self.request.batch_plan.num_micro_batches == 1 and not self.exposed
        if self.backend.device != "cuda" or not is_single:
            return module, None
        return with_outbox(module, self.traced.num_outputs, self.backend.device)


@dataclass(frozen=True)
class _TorchFrontEnd:
    """The request as the flow sees it: traced, lowered, made ready."""

    request: StepRequest
    moved: Callable[[float], None]

    @cached_property
    def _examples(self) -> tuple[list[Tensor], int]:
        return one_micro_batch(self.request)

    def trace(self) -> TracedStep:
        """The operators of one micro-batch."""
        return _trace(self.request, self._examples[0], self.moved)

    def lower(self, traced: TracedStep) -> LoweredStep:
        """Its Graph."""
        return lower_traced(self.request, traced)

    def prepare(self, traced: TracedStep, lowered: LoweredStep) -> CompiledStep:
        """Both, with what it takes to run them."""
        capture = FreshCapture(traced, lowered)
        return CompiledStep(self.request, capture, self._examples[1])


def lower_traced(request: StepRequest, traced: TracedStep) -> LoweredStep:
    """The Graph of a traced step."""
    scale = (_LOSS_SCALE,) if request.scales_loss else ()
    names = [*request.input_names, *scale]
    return lower_step(LowerRequest(request.name, traced, names))


def compile_step(
    request: StepRequest,
    progress: Callable[[str], None] = lambda part: None,
    moved: Callable[[float], None] = lambda share: None,
) -> CompiledStep:
    """Trace and lower one micro-batch of the module.

    `progress` is told of every part that begins, `moved` how far tracing has come.
    """
    if not request.backend.keeps_bfloat16 and _has_bfloat16(request):
        _LOG.warning(_WIDENED)
    return capture_program(_TorchFrontEnd(request, moved), progress)


def _has_bfloat16(request: StepRequest) -> bool:
    module = request.module
    tensors = (*module.parameters(), *module.buffers(), *request.inputs)
    return any(tensor.dtype is torch.bfloat16 for tensor in tensors)


def one_micro_batch(request: StepRequest) -> tuple[list[Tensor], int]:
    """The inputs of the first micro-batch, and its samples."""
    examples: list[Tensor] = []
    shapes: list[tuple[int, ...]] = []
    for name, tensor in zip(request.input_names, request.inputs, strict=True):
        size = request.batch_plan.find_micro_batch_size(tuple(tensor.shape))
        if size is None:
            raise UsageError(
                f"{name} has the shape {list(tensor.shape)}, whose first dimension "
                f"cannot be cut into {request.batch_plan.num_shares} equal parts."
            )
        placed = request.backend.place(request.backend.typed(tensor))
        examples.append(placed[:size] if placed.dim() else placed)
        shapes.append(tuple(examples[-1].shape))
    return examples, batch_of(shapes)


def _trace(
    request: StepRequest, examples: Sequence[Tensor], moved: Callable[[float], None]
) -> TracedStep:
    module, backend = request.module, request.backend
    with backend.tracing():
        return trace_step(
            TraceRequest(
                module=module,
                parameters=_plain(_one_group(request), backend),
                buffers=_plain(module.named_buffers(), backend),
                inputs=examples,
                forward=request.forward,
                trainable=request.trainable,
                scales_loss=request.scales_loss,
                constants=_known_numbers(module),
                has_strided_groups=request.has_strided_groups,
                moved=moved,
            )
        )


def _one_group(request: StepRequest) -> Iterator[tuple[str, Tensor]]:
    """Parameters as one replica sees them."""
    for name, parameter in request.module.named_parameters():
        yield name, parameter[0] if name in request.grouped else parameter


def _plain(named: Iterable[tuple[str, Tensor]], backend: Backend) -> dict[str, Tensor]:
    """Tensors without a front end's wrapper class, in a type the device has."""
    return {
        name: backend.place(backend.typed(tensor.detach())) for name, tensor in named
    }


def _known_numbers(module: nn.Module) -> dict[str, Tensor]:
    """Integer parameters and buffers are compiled in, so their values are known."""
    named = (*module.named_parameters(), *module.named_buffers())
    return {
        name: tensor.detach().clone()
        for name, tensor in named
        # Single numbers only: they may decide Python control flow while tracing.
        if tensor.numel() == 1 and not tensor.is_floating_point()
    }


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
