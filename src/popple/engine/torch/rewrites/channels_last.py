"""Channels innermost, from the first convolution of a step to its last gradient.

A GPU's convolutions want channels innermost, and turn operands that lie otherwise to
and fro. torch.compile lays out a forward pass so, but in the graph of a whole training
step it keeps operands of gradients as they were traced. Here the graph says itself how
tensors lie: operands of convolutions are turned where they do not lie so yet, and
PyTorch's operators hand the layout on, forward and backward.
"""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch._guards import detect_fake_mode
from torch.fx import Graph, GraphModule, Node

from popple.engine.torch.rewrites.views import overwrites

aten = torch.ops.aten
_CONVOLUTION = aten.convolution.default
_TURNED: dict[Any, tuple[int, ...]] = {
    _CONVOLUTION: (0, 1),
    aten.convolution_backward.default: (0, 1, 2),
}
"""Convolutions, and which of their arguments have channels."""

_SMALL_CHANNELS = 64
"""Convolutions of no more channels on either side gain nothing."""


def gains_by_channels_last(graph: Graph) -> bool:
    """Whether a GPU's convolutions are faster with channels innermost.

    Those of groups with several channels each are a good deal slower.
    """
    found = [node for node in graph.nodes if node.target is _CONVOLUTION]
    kernels = [_value(node.args[1]) for node in found]
    if not kernels or any(kernel.dim() != 4 for kernel in kernels):
        return False
    grouped = (
        node.args[-1] != 1 and kernel.shape[1] > 1
        for node, kernel in zip(found, kernels, strict=True)
    )
    is_small = (max(kernel.shape[:2]) <= _SMALL_CHANNELS for kernel in kernels)
    return not any(grouped) and not all(is_small)


def lay_channels_last(module: GraphModule) -> GraphModule:
    """The module with channels innermost, or as it is where that cannot be said.

    Results, and what operators that are not PyTorch's read, lie as they were traced.
    """
    graph = copy.deepcopy(module.graph)
    if not _Turner(graph).run():
        return module
    return GraphModule(module, graph)


class _Turner:
    """Runs a graph without numbers, and turns what its convolutions read."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._now: dict[Node, Any] = {}
        self._turned: dict[tuple[Node, torch.memory_format], Node] = {}

    def run(self) -> bool:
        """Whether all of the graph could be run; it may be half changed if not."""
        traced = [value for n in self._graph.nodes if (value := _value(n)) is not None]
        mode = detect_fake_mode(traced)
        if mode is None:
            return False
        with mode:
            return all(map(self._visit, list(self._graph.nodes)))

    def _visit(self, node: Node) -> bool:
        if node.op in ("placeholder", "get_attr"):
            self._now[node] = _value(node)
            return self._now[node] is not None
        if node.op == "output" or not _is_of_pytorch(node):
            if not self._lay_as_traced(node):
                return False
        elif node.target in _TURNED:
            self._turn(node)
        if overwrites(node):
            self._turned.clear()  # copies of what is written to are no longer true
        return node.op == "output" or self._compute(node)

    def _turn(self, convolution: Node) -> None:
        arguments = list(convolution.args)
        for place in _TURNED[convolution.target]:
            arguments[place] = self._laid(
                arguments[place], torch.channels_last, convolution
            )
        convolution.args = tuple(arguments)

    def _lay_as_traced(self, reader: Node) -> bool:
        for source in reader.all_input_nodes:
            traced, now = _value(source), self._now[source]
            if not isinstance(traced, Tensor) or traced.stride() == now.stride():
                continue
            if not traced.is_contiguous():
                return False
            laid = self._laid(source, torch.contiguous_format, reader)
            reader.replace_input_with(source, laid)
        return True

    def _laid(self, source: Any, form: torch.memory_format, reader: Node) -> Any:
        """The source in a format; turned for the first reader that wants it so."""
        now = self._now.get(source)
        if not isinstance(now, Tensor) or now.is_contiguous(memory_format=form):
            return source
        if (source, form) not in self._turned:
            with self._graph.inserting_before(reader):
                call: dict[str, Any] = {"memory_format": form}
                turned = self._graph.call_function(aten.clone.default, (source,), call)
            turned.meta["val"] = _value(source)
            self._compute(turned)
            self._turned[source, form] = turned
        return self._turned[source, form]

    def _compute(self, node: Node) -> bool:
        args, kwargs = pytree.tree_map_only(
            Node, self._now.__getitem__, (node.args, node.kwargs)
        )
        if node.target is aten.view.default and not _can_view(*args):
            node.target = aten.reshape.default
        target: Any = node.target
        if target is aten.as_strided.default or not callable(target):
            return False
        self._now[node] = target(*args, **kwargs)
        return True


def _can_view(tensor: Tensor, shape: list[int]) -> bool:
    try:
        tensor.view(shape)
    except (RuntimeError, ValueError):
        return False
    return True


def _is_of_pytorch(node: Node) -> bool:
    """Whether an operator is PyTorch's, which take tensors however they lie."""
    if node.target is operator.getitem:
        return True
    return getattr(node.target, "namespace", "") == "aten"


def _value(node: Any) -> Any:
    return node.meta.get("val") if isinstance(node, Node) else None
