"""Count large float16 gradients in a step, for automatic loss scaling.

In: the graph of a traced step. Out: a copy that also returns which share of the float16
elements made in the backward pass lies beyond a limit. Loss scales are adapted by it.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from popple.capture.torch.tags import Tag
from popple.graph import Phase
from popple.marks import TAG

aten = torch.ops.aten


def with_gradient_counts(traced: GraphModule, limit: float) -> GraphModule:
    """The graph with the share of large gradients as its last result.

    Its last argument is the loss scale. Unchanged if the backward pass makes nothing
    in float16.
    """
    graph = copy.deepcopy(traced.graph)
    # The gradient that the backward pass begins with is the loss scale itself, which
    # may be large on purpose.
    ignored = _scaling(graph)
    gradients = [n for n in graph.nodes if _is_gradient(n) and n not in ignored]
    if not gradients:
        return traced
    output = graph.output_node()
    with graph.inserting_before(output):
        counts = [_count_beyond(graph, node, limit) for node in gradients]
        total = graph.call_function(aten.stack.default, (counts,))
        total = graph.call_function(aten.sum.default, (total,))
        size = sum(math.prod(node.meta["val"].shape) for node in gradients)
        share = graph.call_function(aten.div.Tensor, (total, float(size)))
    results = output.args[0]
    assert isinstance(results, (list, tuple))
    output.args = ([*results, share],)
    return GraphModule(traced, graph)


def _scaling(graph: Graph) -> set[Node]:
    """The nodes that make the scaled gradient of the loss: its size is asked for."""
    scale = graph.find_nodes(op="placeholder")[-1]
    casts = [n for n in scale.users if n.target is aten._to_copy.default]
    products = {*scale.users, *(user for cast in casts for user in cast.users)}
    return products | {n for product in products for n in product.all_input_nodes}


def _is_gradient(node: Node) -> bool:
    """Whether a node makes numbers of its own, in float16, in the backward pass."""
    tag = node.meta.get(TAG)
    value = node.meta.get("val")
    if not isinstance(tag, Tag) or tag.phase is not Phase.BACKWARD:
        return False
    if not isinstance(value, Tensor) or value.dtype is not torch.float16:
        return False
    schema = getattr(node.target, "_schema", None)
    return schema is not None and not any(r.alias_info for r in schema.returns)


def _count_beyond(graph: Graph, node: Node, limit: float) -> Node:
    """The number of elements beyond the limit; those that are no number count too."""
    size = graph.call_function(aten.abs.default, (node,))
    # Asked this way round a NaN, which is neither larger nor smaller, counts as large.
    is_small = graph.call_function(aten.le.Scalar, (size, limit))
    is_large = graph.call_function(aten.logical_not.default, (is_small,))
    return graph.call_function(aten.sum.default, (is_large,))
