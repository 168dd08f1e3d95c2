"""Expose tensors inside a traced step as extra outputs (anchors).

`expose` gives a step that also returns them, as they are when they are computed: what
writes over them later in the step does not change what is returned.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.fx import Graph, GraphModule, Node

from popple.capture.torch import TracedStep


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


def _copy_of(graph: Graph, node: Node) -> Node:
    """A node behind this one that copies its value."""
    place = node
    # Placeholders have to stay together at the front of a graph.
    if node.op == "placeholder":
        place = graph.find_nodes(op="placeholder")[-1]
    with graph.inserting_after(place):
        clone = graph.call_function(torch.ops.aten.clone.default, (node,))
    clone.meta["val"] = node.meta["val"].clone()
    return clone
