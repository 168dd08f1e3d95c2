"""Queries of a traced step: its loss, gradients and constant outputs."""

from __future__ import annotations

from torch.fx import GraphModule, Node

from popple.capture.torch.control import TracedLoop, all_nodes
from popple.capture.torch.effects import find_storages, is_random, written_storages
from popple.capture.torch.tags import Tag
from popple.capture.torch.trace import TracedStep
from popple.graph import Phase
from popple.marks import TAG


def constant_outputs(step: TracedStep) -> frozenset[int]:
    """Numbers of the outputs that depend on nothing but the program's text."""
    variable = _find_variable(step.graph_module)
    results = step.graph_module.graph.output_node().args[0]
    assert isinstance(results, (list, tuple))
    outputs = enumerate(results[: step.num_outputs])
    return frozenset(number for number, node in outputs if node not in variable)


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


def _draws(node: Node) -> bool:
    """Whether a node, or a loop in it, draws random numbers."""
    if isinstance(node.target, TracedLoop):
        return any(map(is_random, all_nodes(node.target.body.graph)))
    return is_random(node)


def _find_variable(traced: GraphModule) -> set[Node]:
    """Nodes that depend on an argument, on chance, or on memory written to."""
    storages = find_storages(traced)
    written = written_storages(traced, storages)
    variable: set[Node] = set()
    for node in traced.graph.nodes:
        # Nodes are in order, so whatever a node reads has been judged before.
        reads = not variable.isdisjoint(node.all_input_nodes)
        is_given = node.op == "placeholder" or storages.get(node) in written
        if reads or is_given or _draws(node):
            variable.add(node)
    return variable
