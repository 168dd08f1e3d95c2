"""Trace one micro-batch of a module into a graph of aten operators.

In: a module, how to bind its arguments, the tensors it reads. Out: a TracedStep, an
`fx.GraphModule` over flat lists of tensors whose nodes carry Tags. Tracing runs the
user's Python once, on fake tensors: no arithmetic, no memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental.proxy_tensor import (
    get_proxy_mode,
    get_proxy_slot,
    make_fx,
)

from popple.capture.torch.control import (
    ControlFlow,
    TracedBranch,
    loops_in,
)
from popple.capture.torch.losses import LossMarks
from popple.capture.torch.outside import call_outside
from popple.capture.torch.rewrites import DECOMPOSITIONS, keep_statistics
from popple.capture.torch.rules import device_rules, explained_errors
from popple.capture.torch.swapped import swapped, tensor_at
from popple.capture.torch.tags import Block, Tagger, newest_node, nodes_after
from popple.errors import CaptureError
from popple.graph import Notes


class Forward(Protocol):
    """The front end's side of a trace: how forward is called, what it returned."""

    def announcing(self, trace: ActiveTrace) -> AbstractContextManager[None]:
        """A context to trace in: blocks, losses and scopes are announced to `trace`."""
        ...

    def arguments(
        self, tensors: Sequence[Tensor]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of forward, (args, kwargs), made of the flat input tensors."""
        ...

    def tensors_of(self, returned: Any) -> Sequence[Tensor]:
        """The tensors of what forward returned, always in the same order."""
        ...


class PlainForward:
    """A forward that takes tensors and returns any nest of tuples, lists and dicts."""

    def announcing(self, trace: ActiveTrace) -> AbstractContextManager[None]:
        """Nothing is announced."""
        return nullcontext()

    def arguments(
        self, tensors: Sequence[Tensor]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The tensors themselves."""
        return tuple(tensors), {}

    def tensors_of(self, returned: Any) -> Sequence[Tensor]:
        """The leaves that are tensors."""
        leaves = pytree.tree_leaves(returned)
        return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


@dataclass(frozen=True)
class TraceRequest:
    """What to trace.

    `trainable` names the parameters to differentiate; None asks for inference. With
    `scales_loss` the step takes a last argument, a float32 number that all gradients
    are multiplied by. `constants` are the values of parameters and buffers that
    forward may look at, single numbers. With `has_strided_groups`, group normalisation
    strides over channels. `moved` is told now and then which share has been traced.
    """

    module: nn.Module
    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    inputs: Sequence[Tensor]
    forward: Forward = field(default_factory=PlainForward)
    trainable: tuple[str, ...] | None = None
    scales_loss: bool = False
    constants: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    has_strided_groups: bool = False
    moved: Callable[[float], None] = lambda share: None


@dataclass(frozen=True)
class ActiveTrace:
    """A trace under way, as front ends see it: where to announce blocks and losses."""

    tagger: Tagger
    losses: LossMarks | None
    request: TraceRequest
    control: ControlFlow

    def set_block(self, block: Block) -> None:
        """Ops from here on belong to `block`."""
        self.tagger.block = block

    def mark_loss(self, loss: Tensor) -> None:
        """`loss` is what training minimises; inference has no use for it."""
        if self.losses is not None:
            self.losses.mark(loss)

    @property
    def is_training(self) -> bool:
        """Whether the step is differentiated."""
        return self.request.trainable is not None

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names of ops made inside begin with `name`."""
        self.tagger.scopes.append(name)
        try:
            yield
        finally:
            self.tagger.scopes.pop()

    @contextmanager
    def noted(self, notes: Notes) -> Iterator[None]:
        """Ops made inside have these notes, and so have their gradients."""
        outer = self.tagger.notes
        self.tagger.notes = outer.updated(notes)
        try:
            yield
        finally:
            self.tagger.notes = outer

    def newest_node(self) -> Node | None:
        """The node of the operator traced last."""
        return newest_node(_nodes_so_far())

    def nodes_after(self, node: Node | None) -> list[Node]:
        """Nodes of the operators traced since, newest last."""
        return nodes_after(_nodes_so_far(), node)

    def name_of(self, tensor: Tensor) -> str:
        """The name of a tensor in the graph so far."""
        proxy_mode = get_proxy_mode()
        if proxy_mode is None:
            return "tensor"
        held = get_proxy_slot(tensor, proxy_mode.tracer, None)
        return "tensor" if held is None else held.proxy.node.name

    def run_outside(
        self, function: Callable[..., Any], shapes: Sequence[Tensor]
    ) -> Any:
        """What a function returns for zeros of these shapes, off the record.

        It sees the real parameters and buffers of the module, not the traced ones.
        """
        state = {**self.request.parameters, **self.request.buffers}
        return call_outside(function, shapes, self.request.module, state)


def _nodes_so_far() -> Any:
    proxy_mode = get_proxy_mode()
    return () if proxy_mode is None else proxy_mode.tracer.graph.nodes


@dataclass(frozen=True)
class TracedStep:
    """A traced micro-batch.

    The graph module takes parameters, buffers and inputs, in that order, as one flat
    argument list, and then the loss scale if there is one; it returns the tensors of
    the output followed by one gradient (or None) per trainable parameter. `example` is
    what forward returned while tracing, for its structure. `branches` are parts of the
    graph of which only one matters in a run.
    """

    graph_module: GraphModule
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    num_inputs: int
    trainable: tuple[str, ...]
    num_outputs: int
    example: Any
    branches: tuple[TracedBranch, ...] = ()


@dataclass
class _Seen:
    """What tracing learns besides the graph: what forward returned, its branches."""

    example: Any = None
    num_outputs: int = 0
    control: ControlFlow = field(default_factory=ControlFlow)


def trace_step(request: TraceRequest) -> TracedStep:
    """Trace one micro-batch: forward, and backward if training is asked for."""
    seen = _Seen()
    names = (*request.parameters, *request.buffers)

    def step(*flat: Tensor) -> list[Tensor | None]:
        state = dict(zip(names, flat, strict=False))
        return _run_step(request, seen, state, flat[len(names) :])

    arguments = [
        *request.parameters.values(),
        *request.buffers.values(),
        *request.inputs,
    ]
    if request.scales_loss:
        arguments.append(torch.ones((), device=arguments[0].device))
    # "real": the arguments are fake already, and need not be made so. Nobody asks the
    # nodes which functions of torch they come from.
    tracer = make_fx(step, DECOMPOSITIONS, "real", _disable_torch_fn_metadata_mode=True)
    # Tensors that the program did not pass in (constants) are let through.
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    with explained_errors(), _without_fake_tensor_log():
        fakes = _fakes(arguments, fake_mode)
        # The module's own code is generated if it is run, which a traced step rarely
        # is: it is lowered, and copied for a replay.
        with fake_mode, _use_lazy_graph_module(True):
            traced = tracer(*fakes)
    # After tracing: only the whole graph tells who writes to a buffer.
    if request.buffers:
        keep_statistics(traced)
        for loop in loops_in(traced.graph):
            keep_statistics(loop.body)
    known = set(traced.graph.nodes)
    return TracedStep(
        graph_module=traced,
        parameters=tuple(request.parameters),
        buffers=tuple(request.buffers),
        num_inputs=len(request.inputs),
        trainable=request.trainable or (),
        num_outputs=seen.num_outputs,
        example=seen.example,
        # Branches whose results were dead have left the graph.
        branches=tuple(b for b in seen.control.branches if known.issuperset(b.results)),
    )


def _fakes(tensors: Sequence[Tensor], mode: FakeTensorMode) -> list[Tensor]:
    """Fake tensors of the same types, each with memory of its own."""
    with mode:
        return [
            # Strides are kept, since kernels and views depend on them.
            torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
            for t in tensors
        ]


@contextmanager
def _without_fake_tensor_log() -> Iterator[None]:
    """Errors in the user's program are raised; they need not be logged as well."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _run_step(
    request: TraceRequest,
    seen: _Seen,
    state: dict[str, Tensor],
    inputs: Sequence[Tensor],
) -> list[Tensor | None]:
    is_training = request.trainable is not None
    # Only trained weights: autograd then records nothing for the rest of the model.
    weights = [state[name].requires_grad_() for name in request.trainable or ()]
    for name in request.parameters:
        state[name]._is_param = True  # an nn.Parameter, for whoever asks
    _tell_constants(state, request.constants)
    # The root module has no path of its own.
    paths = {id(m): path for path, m in request.module.named_modules() if path}
    tagger = Tagger(paths, request.moved)
    losses = LossMarks() if is_training else None
    rules = device_rules(request.has_strided_groups)
    trace = ActiveTrace(tagger, losses, request, seen.control)
    with (
        tagger,
        tagger.watch_modules(),
        torch.set_grad_enabled(is_training),
        request.forward.announcing(trace),
    ):
        with rules, losses or nullcontext():
            args, kwargs = request.forward.arguments(inputs[: len(request.inputs)])
            seen.example = _call(request.module, state, args, kwargs)
        gradients: list[Tensor | None] = []
        if losses is not None:
            loss, scale = losses.final_loss(), inputs[len(request.inputs) :]
            gradients = _differentiate(loss, weights, tagger, *scale)
    tensors = request.forward.tensors_of(seen.example)
    if seen.control.has_loops:
        seen.control.verify(tensors)
    seen.num_outputs = len(tensors)
    return [*(tensor.detach() for tensor in tensors), *gradients]


def _tell_constants(state: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Let forward read the values of these parameters and buffers."""
    proxy_mode = get_proxy_mode()
    for name, value in values.items():
        if proxy_mode is not None:
            get_proxy_slot(state[name], proxy_mode.tracer).constant = value


def _call(
    module: nn.Module, state: Mapping[str, Tensor], args: Any, kwargs: dict[str, Any]
) -> Any:
    """Call the module with other parameters and buffers, which it must keep."""
    with swapped(module, state):
        result = module(*args, **kwargs)
        for name, tensor in state.items():
            if tensor_at(module, name) is not tensor:
                raise CaptureError(
                    f"forward assigns or deletes {name}, a parameter or buffer of the "
                    "model. The new tensor would be lost after the call.",
                    remedy=f"Write into it, {name}.copy_(...), or use a local name.",
                )
        return result


def _differentiate(
    loss: Tensor, weights: list[Tensor], tagger: Tagger, scale: Tensor | None = None
) -> list[Tensor | None]:
    tagger.start_backward()
    if not weights or not loss.requires_grad:
        return [None for _ in weights]
    # The seed is scaled, not the loss, which the program may return.
    seed = torch.ones_like(loss)
    if scale is not None:
        seed = seed * scale.to(loss.dtype)
    return list(torch.autograd.grad(loss, weights, seed, allow_unused=True))
