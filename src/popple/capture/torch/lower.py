"""From a traced step to a Graph: one aten node becomes one or more ops.

How an aten operator is lowered is data: the table in `aten/` maps its name to a
Lowering. An operator without an entry becomes a `generic` op that carries its name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from popple.capture.torch.aten import find_lowering
from popple.capture.torch.builder import GraphBuilder, NodeContext
from popple.capture.torch.tags import TAG, Tag
from popple.capture.torch.trace import TracedStep
from popple.graph import Graph, Phase, Role, Value

Place = Callable[[Tag], tuple[int, int]]
"""(chip, stage) of a tagged op, as the front end's execution strategy decides."""


@dataclass(frozen=True)
class LowerRequest:
    """A traced step with the names its inputs go by and the placement of blocks."""

    name: str
    step: TracedStep
    input_names: Sequence[str]
    place: Place


@dataclass(frozen=True)
class LoweredStep:
    """The Graph of a micro-batch, with the gradient value of each trained weight."""

    graph: Graph
    gradients: Mapping[str, str]


def lower_step(request: LowerRequest) -> LoweredStep:
    """The Graph of a traced step, without optimiser and repetition."""
    step = request.step
    builder = GraphBuilder()
    nodes = list(step.graph_module.graph.nodes)
    _declare_arguments(request, builder, [n for n in nodes if n.op == "placeholder"])
    for node in nodes:
        if node.op == "get_attr":
            constant = _find_attribute(step.graph_module, str(node.target))
            builder.declare(node, node.name, constant, Role.CONSTANT)
        elif node.op == "call_function":
            _lower_node(builder, node, request.place)
    results = _output_arguments(nodes[-1])
    outputs = [builder.name_of(n) for n in results[: step.num_outputs]]
    gradients = {
        weight: builder.name_of(n)
        for weight, n in zip(step.trainable, results[step.num_outputs :], strict=True)
        if n is not None
    }
    graph = Graph(
        request.name, builder.values, tuple(builder.ops), tuple(dict.fromkeys(outputs))
    )
    return LoweredStep(_without_dead_ops(graph, set(gradients.values())), gradients)


def _declare_arguments(
    request: LowerRequest, builder: GraphBuilder, placeholders: list[Node]
) -> None:
    step = request.step
    named = [
        *((name, Role.WEIGHT) for name in step.parameters),
        *((name, Role.STATE) for name in step.buffers),
        *((name, Role.INPUT) for name in request.input_names),
    ]
    for node, (name, role) in zip(placeholders, named, strict=True):
        builder.declare(node, name, node.meta["val"], role)


def _find_attribute(module: torch.nn.Module, path: str) -> Tensor:
    return operator.attrgetter(path)(module)


def _lower_node(builder: GraphBuilder, node: Node, place: Place) -> None:
    if node.target is operator.getitem:
        builder.alias_item(node)
        return
    tag: Tag = node.meta.get(TAG, Tag(Phase.FORWARD, None))
    chip, stage = _place_of(builder, node, tag, place)
    context = NodeContext(builder, node, tag, chip, stage)
    find_lowering(str(node.target))(context)


def _place_of(
    builder: GraphBuilder, node: Node, tag: Tag, place: Place
) -> tuple[int, int]:
    """The block's place, or for ops outside the user's code that of an operand.

    Sums of gradients have no forward partner: they belong where the gradient made
    last lies, which in the backward pass is the earliest stage.
    """
    if tag.block is not None or tag.phase is Phase.FORWARD:
        return place(tag)
    places = [builder.place_of(source) for source in node.all_input_nodes]
    known = [found for found in places if found is not None]
    return min(known, key=lambda found: found[1]) if known else place(tag)


def _output_arguments(output: Node) -> list[Any]:
    arguments = output.args[0]
    return list(arguments) if isinstance(arguments, (list, tuple)) else [arguments]


def _without_dead_ops(graph: Graph, results: set[str]) -> Graph:
    """Drop ops whose results nobody reads and that write to no given value."""
    needed = set(graph.outputs) | results
    kept = []
    for op in reversed(graph.ops):
        writes_state = any(_is_given(graph, graph.root(name)) for name in op.outputs)
        if writes_state or needed.intersection(op.outputs):
            kept.append(op)
            needed.update(op.inputs)
    used = needed | {name for op in kept for name in op.outputs}
    used |= {graph.root(name) for name in used}
    values = {
        name: value
        for name, value in graph.values.items()
        if name in used or value.role in (Role.INPUT, Role.WEIGHT, Role.STATE)
    }
    values = _with_whole_storage(graph.values, values)
    return replace(graph, values=values, ops=tuple(reversed(kept)))


def _is_given(graph: Graph, name: str) -> bool:
    return graph.values[name].role is not Role.ACTIVATION


def _with_whole_storage(
    everything: Mapping[str, Value], kept: Mapping[str, Value]
) -> dict[str, Value]:
    """Let kept values share with their kept owner when links between are dropped."""
    result: dict[str, Value] = {}
    for name, value in kept.items():
        storage = value.storage
        while storage and storage not in kept:
            storage = everything[storage].storage
        result[name] = replace(value, storage=storage)
    return result
