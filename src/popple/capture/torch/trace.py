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
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from popple.capture.torch.losses import LossMarks
from popple.capture.torch.tags import Tagger
from popple.errors import CaptureError

Bind = Callable[[Sequence[Tensor]], tuple[tuple[Any, ...], dict[str, Any]]]
"""Rebuilds the arguments of forward, (args, kwargs), from flat input tensors."""


@dataclass(frozen=True)
class TraceRequest:
    """What to trace.

    `trainable` names the parameters to differentiate; None asks for inference.
    `default_block` is the placement of ops before the first block. The listener is
    told the running trace so that blocks and losses can be announced to it.
    """

    module: nn.Module
    bind: Bind
    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    inputs: Sequence[Tensor]
    trainable: tuple[str, ...] | None = None
    default_block: object | None = None
    listener: Callable[[ActiveTrace], Any] = field(default=lambda trace: None)


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
    None) per trainable parameter. `output_spec` rebuilds what forward returned from
    tensors; `constants` are the leaves of it that were no tensors.
    """

    graph_module: GraphModule
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    num_inputs: int
    trainable: tuple[str, ...]
    output_spec: pytree.TreeSpec
    constants: Mapping[int, Any]
    num_outputs: int

    def unflatten(self, tensors: Sequence[Any]) -> Any:
        """What forward returned, with these tensors in place of the traced ones."""
        supply = iter(tensors)
        leaves = [
            self.constants[i] if i in self.constants else next(supply)
            for i in range(self.output_spec.num_leaves)
        ]
        return pytree.tree_unflatten(leaves, self.output_spec)


class _Recorder:
    """What the traced function learns besides the graph: the output's structure."""

    def __init__(self) -> None:
        self.spec: pytree.TreeSpec | None = None
        self.constants: dict[int, Any] = {}
        self.num_outputs = 0

    def split(self, outputs: Any) -> list[Tensor]:
        leaves, self.spec = pytree.tree_flatten(outputs)
        tensors: list[Tensor] = []
        for index, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                tensors.append(leaf)
            else:
                self.constants[index] = leaf
        self.num_outputs = len(tensors)
        return tensors


def trace_step(request: TraceRequest) -> TracedStep:
    """Trace one micro-batch: forward, and backward if training is asked for."""
    recorder = _Recorder()
    names = (*request.parameters, *request.buffers)
    paths = {id(m): path for path, m in request.module.named_modules() if path}

    def step(*flat: Tensor) -> list[Tensor | None]:
        state = dict(zip(names, flat, strict=False))
        return _run_step(request, recorder, state, flat[len(names) :], paths)

    examples = [
        *request.parameters.values(),
        *request.buffers.values(),
        *request.inputs,
    ]
    traced = make_fx(
        step, tracing_mode="fake", record_module_stack=False, _allow_non_fake_inputs=True
    )(*[tensor.detach() for tensor in examples])
    if recorder.spec is None:
        raise CaptureError("the traced step never ran.")
    return TracedStep(
        graph_module=traced,
        parameters=tuple(request.parameters),
        buffers=tuple(request.buffers),
        num_inputs=len(request.inputs),
        trainable=request.trainable or (),
        output_spec=recorder.spec,
        constants=recorder.constants,
        num_outputs=recorder.num_outputs,
    )


def _run_step(
    request: TraceRequest,
    recorder: _Recorder,
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
            outputs = functional_call(request.module, state, args, kwargs)
        tensors = recorder.split(outputs)
        gradients: list[Tensor | None] = []
        if is_training:
            gradients = _differentiate(losses.final_loss(), weights, tagger)
    return [*(tensor.detach() for tensor in tensors), *gradients]


def _differentiate(
    loss: Tensor, weights: list[Tensor], tagger: Tagger
) -> list[Tensor | None]:
    tagger.start_backward()
    if not weights:
        return []
    seed = torch.ones_like(loss)
    return list(torch.autograd.grad(loss, weights, seed, allow_unused=True))

