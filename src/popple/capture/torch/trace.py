"""One micro-batch of a module, traced into a graph of aten operators.

In: a module, how to bind its arguments, the tensors it reads. Out: a TracedStep, an
`fx.GraphModule` over flat lists of tensors whose nodes carry Tags. Tracing runs the
user's Python once, on fake tensors: no arithmetic, no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch.func import functional_call
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from popple.capture.torch.losses import LossMarks
from popple.capture.torch.tags import Tagger

Bind = Callable[[Sequence[Tensor]], tuple[tuple[Any, ...], dict[str, Any]]]
"""Rebuilds the arguments of forward, (args, kwargs), from flat input tensors."""


def _tensors_of(outputs: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(outputs) if isinstance(leaf, Tensor)]


@dataclass(frozen=True)
class TraceRequest:
    """What to trace.

    `trainable` names the parameters to differentiate; None asks for inference.
    `default_block` is the placement of ops before the first block. The listener is
    told the running trace so that blocks and losses can be announced to it. `flatten`
    lists the tensors of what forward returns.
    """

    module: nn.Module
    bind: Bind
    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    inputs: Sequence[Tensor]
    trainable: tuple[str, ...] | None = None
    default_block: object | None = None
    listener: Callable[[ActiveTrace], Any] = field(default=lambda trace: None)
    flatten: Callable[[Any], Sequence[Tensor]] = field(default=_tensors_of)


@dataclass(frozen=True)
class ActiveTrace:
    """A trace under way, as front ends see it: where to announce blocks and losses."""

    tagger: Tagger
    losses: LossMarks

    def set_block(self, block: object | None) -> None:
        """Ops from here on belong to `block`."""
        self.tagger.block = block

    def mark_loss(self, loss: Tensor) -> None:
        """`loss` is what training minimises."""
        self.losses.mark(loss)


@dataclass(frozen=True)
class TracedStep:
    """A traced micro-batch.

    The graph module takes parameters, buffers and inputs, in that order, as one flat
    argument list; it returns the tensors of the output followed by one gradient (or
    None) per trainable parameter. `example` is what forward returned while tracing,
    for its structure.
    """

    graph_module: GraphModule
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    num_inputs: int
    trainable: tuple[str, ...]
    num_outputs: int
    example: Any


@dataclass
class _Seen:
    """What tracing learns besides the graph: what forward returned."""

    example: Any = None
    num_outputs: int = 0


def trace_step(request: TraceRequest) -> TracedStep:
    """Trace one micro-batch: forward, and backward if training is asked for."""
    seen = _Seen()
    names = (*request.parameters, *request.buffers)
    paths = {id(m): path for path, m in request.module.named_modules() if path}

    def step(*flat: Tensor) -> list[Tensor | None]:
        state = dict(zip(names, flat, strict=False))
        return _run_step(request, seen, state, flat[len(names) :], paths)

    examples = [
        *request.parameters.values(),
        *request.buffers.values(),
        *request.inputs,
    ]
    traced = make_fx(
        step, tracing_mode="fake", record_module_stack=False, _allow_non_fake_inputs=True
    )(*[tensor.detach() for tensor in examples])
    return TracedStep(
        graph_module=traced,
        parameters=tuple(request.parameters),
        buffers=tuple(request.buffers),
        num_inputs=len(request.inputs),
        trainable=request.trainable or (),
        num_outputs=seen.num_outputs,
        example=seen.example,
    )


def _run_step(
    request: TraceRequest,
    seen: _Seen,
    state: dict[str, Tensor],
    inputs: Sequence[Tensor],
    paths: dict[int, str],
) -> list[Tensor | None]:
    is_training = request.trainable is not None
    weights = [state[name].requires_grad_() for name in request.trainable or ()]
    tagger = Tagger(paths, request.default_block)
    losses = LossMarks()
    trace = ActiveTrace(tagger, losses)
    with tagger, tagger.watch_modules(), torch.set_grad_enabled(is_training):
        with losses:
            request.listener(trace)
            args, kwargs = request.bind(inputs)
            seen.example = functional_call(request.module, state, args, kwargs)
        gradients: list[Tensor | None] = []
        if is_training:
            gradients = _differentiate(losses.final_loss(), weights, tagger)
    tensors = request.flatten(seen.example)
    seen.num_outputs = len(tensors)
    return [*(tensor.detach() for tensor in tensors), *gradients]


def _differentiate(
    loss: Tensor, weights: list[Tensor], tagger: Tagger
) -> list[Tensor | None]:
    tagger.start_backward()
    if not weights:
        return []
    seed = torch.ones_like(loss)
    return list(torch.autograd.grad(loss, weights, seed, allow_unused=True))


def overwritten_arguments(traced: GraphModule) -> list[int]:
    """Positions of the arguments that running the graph overwrites."""
    owners = {
        _storage(node): index
        for index, node in enumerate(traced.graph.find_nodes(op="placeholder"))
    }
    found: set[int] = set()
    for node in traced.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.is_mutable:
            continue
        for argument, declared in zip(node.args, schema.arguments, strict=False):
            info = declared.alias_info
            if isinstance(argument, Node) and info is not None and info.is_write:
                found.add(owners.get(_storage(argument), -1))
    return sorted(found - {-1})


def _storage(node: Node) -> int:
    return node.meta["val"].untyped_storage()._cdata
