"""Values inside a traced step that someone wants to see.

`expose` gives a step that also returns them, as they are when they are computed: what
writes over them later in the step does not change what is returned.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.fx import Graph, GraphModule, Node

from popple.capture.torch.tags import Tag
from popple.capture.torch.trace import TracedStep
from popple.graph import Phase
from popple.marks import TAG


def expose(step: TracedStep, nodes: Sequence[Node]) -> TracedStep:
    """A step with the values of these nodes behind its outputs."""
    if not nodes:
        return step
    graph = copy.deepcopy(step.graph_module.graph)
    by_name = {node.name: node for node in graph.nodes}
    copies = [_copy_of(graph, by_name[node.name]) for node in nodes]
    output = graph.output_node()
    results = output.args[0]
    assert isinstance(results, (list, tuple))
    end = step.num_outputs
    output.args = ([*results[:end], *copies, *results[end:]],)
    return replace(
        step,
        graph_module=GraphModule(step.graph_module, graph),
        num_outputs=end + len(copies),
    )


def find_loss(step: TracedStep) -> Node | None:
    """The value that a training step minimises: the backward pass begins at it."""
    for node in step.graph_module.graph.nodes:
        tag = node.meta.get(TAG)
        if isinstance(tag, Tag) and tag.phase is Phase.BACKWARD:
            return next(iter(node.all_input_nodes), None)
    return None


def gradient_nodes(step: TracedStep) -> dict[str, Node]:
    """The gradient of each trained parameter that has one."""
    results = step.graph_module.graph.output_node().args[0]
    assert isinstance(results, (list, tuple))
    gradients = zip(step.trainable, results[step.num_outputs :], strict=True)
    return {name: node for name, node in gradients if isinstance(node, Node)}


def _copy_of(graph: Graph, node: Node) -> Node:
    """A node behind this one that copies its value."""
    place = node
    if node.op == "placeholder":
        place = graph.find_nodes(op="placeholder")[-1]
    with graph.inserting_after(place):
        clone = graph.call_function(torch.ops.aten.clone.default, (node,))
    clone.meta["val"] = node.meta["val"].clone()
    return clone
