"""Control flow in a traced step: loops as one node, branches with both sides.

A loop's body is traced once and cut out of the graph: one node stands for the loop, a
`TracedLoop` that runs the body as often as it should. Of a branch both sides stay in
the graph, since both are computed and the condition picks between their results; a
`TracedBranch` remembers which nodes are which, so that the Graph gets a real branch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.fx.node import has_side_effect

from popple.capture.torch.effects import written_arguments
from popple.capture.torch.tags import newest_node, nodes_after
from popple.errors import CaptureError

Tensors = list[Tensor]
Body = Callable[[Tensors], Tensors]


@dataclass(frozen=True, eq=False)
class TracedBranch:
    """Two parts of a traced graph of which one matters in a run.

    `results` are the nodes behind both sides that pick between what they return.
    """

    condition: Node
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...]
    then_results: tuple[Node, ...]
    other_results: tuple[Node, ...]
    results: tuple[Node, ...]

    def nodes(self) -> tuple[Node, ...]:
        """All nodes that the branch takes the place of."""
        return (*self.then, *self.otherwise, *self.results)

    def renamed(self, names: Callable[[Node], Node]) -> TracedBranch:
        """The same branch in a graph whose nodes were copied or replaced."""

        def each(nodes: Iterable[Node]) -> tuple[Node, ...]:
            return tuple(dict.fromkeys(names(node) for node in nodes))

        return TracedBranch(
            names(self.condition),
            each(self.then),
            each(self.otherwise),
            tuple(map(names, self.then_results)),
            tuple(map(names, self.other_results)),
            tuple(map(names, self.results)),
        )


@dataclass(frozen=True, eq=False)
class TracedLoop:
    """What the node of a loop calls: the body, `count` times.

    The body takes `num_carried` tensors that it gives back changed, then those that
    stay the same; of these it overwrites the ones at the positions `written`.
    """

    body: GraphModule
    count: int
    num_carried: int
    written: tuple[int, ...]
    branches: tuple[TracedBranch, ...]

    __name__ = "loop"  # FX calls the node so

    def __call__(self, *inputs: Any) -> list[Any]:
        """Run the loop."""
        return self.run(self.body, inputs)

    def run(self, body: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
        """Run the loop with another form of its body."""
        carried, fixed = inputs[: self.num_carried], inputs[self.num_carried :]
        for _ in range(self.count):
            carried = body(*carried, *fixed)
        return list(carried)


def loops_in(graph: Graph) -> Iterator[TracedLoop]:
    """The loops of a graph, and those inside their bodies."""
    for node in graph.nodes:
        if isinstance(node.target, TracedLoop):
            yield node.target
            yield from loops_in(node.target.body.graph)


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the bodies of its loops."""
    yield from graph.nodes
    for loop in loops_in(graph):
        yield from loop.body.graph.nodes


@dataclass
class ControlFlow:
    """Loops and branches of a step while it is traced.

    Bodies of loops leave the graph as soon as they are traced, so that what surrounds
    them never sees their nodes; `branches` are those that are left in it.
    """

    branches: list[TracedBranch] = field(default_factory=list[TracedBranch])
    has_loops: bool = False

    def repeat(self, count: int, body: Body, inputs: Tensors) -> Tensors:
        """Trace a body that runs `count` times, each time on what it gave before."""
        self.has_loops = True
        # Copies, so that the body's overwriting does not reach the caller's tensors,
        # and so that every carried tensor has a node of its own.
        carried = [tensor.clone() for tensor in inputs]
        entered = _nodes_of(carried)  # the body may let the tensors stand for others
        before = newest_node(_graph().nodes)
        # Results have memory of their own, whatever the body returned.
        results = [tensor.clone() for tensor in body(carried)]
        inside = nodes_after(_graph().nodes, before)
        self._fold(count, inside, entered, results)
        return results

    def branch(
        self,
        condition: Tensor,
        then: Callable[[], Tensors],
        otherwise: Callable[[], Tensors],
    ) -> Tensors:
        """Trace both sides; the results are those of one of them."""
        before = newest_node(_graph().nodes)
        chosen = then()
        between = newest_node(_graph().nodes)
        other = otherwise()
        after = newest_node(_graph().nodes)
        pairs = zip(chosen, other, strict=True)
        results = [torch.where(condition, one, two) for one, two in pairs]
        num_picking = len(nodes_after(_graph().nodes, after))
        inside = nodes_after(_graph().nodes, before)
        num_other = len(nodes_after(_graph().nodes, between)) - num_picking
        split = len(inside) - num_picking - num_other
        self.branches.append(
            TracedBranch(
                _nodes_of([condition])[0],
                tuple(inside[:split]),
                tuple(inside[split : split + num_other]),
                tuple(_nodes_of(chosen)),
                tuple(_nodes_of(other)),
                tuple(_nodes_of(results)),
            )
        )
        return results

    def _fold(
        self, count: int, inside: list[Node], carried: list[Node], results: Tensors
    ) -> None:
        """Put one node in place of the nodes of a loop's body."""
        graph = _graph()
        # Constants of the program are the same in every round.
        for node in [n for n in inside if n.op == "get_attr"]:
            inside[0].prepend(node)
            inside.remove(node)
        made = _nodes_of(results)
        fixed = _outer_inputs(inside, carried)
        body, copies = _cut_out(inside, [*carried, *fixed], made)
        written = tuple(_written(inside, fixed, len(carried)))
        own = [b for b in self.branches if not set(inside).isdisjoint(b.results)]
        # Branches inside the body move with it.
        self.branches = [b for b in self.branches if b not in own]
        loop = TracedLoop(
            GraphModule(torch.nn.Module(), body),
            count,
            len(carried),
            written,
            tuple(b.renamed(lambda node: copies.get(node, node)) for b in own),
        )
        if written or any(map(_has_effect, inside)):
            has_side_effect(loop)  # no pass of FX may take it for unused
        items = _append(graph, loop, [*carried, *fixed], made)
        # A tensor that the body overwrote is read from the outer one whose memory it
        # is.
        owners = {_storage(node): node for node in fixed}
        _redirect(inside, dict(zip(made, items, strict=True)), owners)
        for node in reversed(inside):
            graph.erase_node(node)

    def verify(self, results: Iterable[Tensor]) -> None:
        """CaptureError if something reads a tensor that only a round of a loop has.

        `results` are what the step returns; called when all of it is traced.
        """
        nodes = _graph().nodes
        read = {source for node in nodes for source in node.all_input_nodes}
        slots = (get_proxy_slot(each, _tracer(), None) for each in results)
        read.update(slot.proxy.node for slot in slots if slot is not None)
        if not read <= set(nodes):
            raise CaptureError(
                "the body of a loop leaves a tensor outside of it, which is another "
                "one in every round.",
                remedy="Return it from the body.",
            )


def _tracer() -> Any:
    mode = get_proxy_mode()
    assert mode is not None, "control flow is met while a program is traced"
    return mode.tracer


def _graph() -> Graph:
    return _tracer().graph


def _nodes_of(tensors: Iterable[Tensor]) -> list[Node]:
    tracer = _tracer()
    return [get_proxy_slot(tensor, tracer).proxy.node for tensor in tensors]


def _outer_inputs(inside: Sequence[Node], carried: Sequence[Node]) -> list[Node]:
    """What the body reads besides what is carried."""
    own = {*inside, *carried}
    inputs = (source for node in inside for source in node.all_input_nodes)
    return list(dict.fromkeys(n for n in inputs if n not in own))


def _cut_out(
    inside: Sequence[Node], inputs: Sequence[Node], results: Sequence[Node]
) -> tuple[Graph, dict[Node, Node]]:
    """The body as a graph of its own, and its nodes by those they are copies of."""
    body = Graph()
    copies: dict[Node, Node] = {}
    for index, node in enumerate(inputs):
        copies[node] = body.placeholder(f"arg{index}")
        copies[node].meta = {"val": node.meta.get("val")}
    for node in inside:
        copies[node] = body.node_copy(node, copies.__getitem__)
    body.output([copies[node] for node in results])
    return body, copies


def _written(
    inside: Sequence[Node], fixed: Sequence[Node], first: int
) -> Iterator[int]:
    """Positions of the inputs whose memory the body writes to."""
    arguments = (a for node in inside for a in written_arguments(node))
    memory = {_storage(argument) for argument in arguments}
    for position, node in enumerate(fixed, start=first):
        if _storage(node) in memory:
            yield position


def _storage(node: Node) -> int | None:
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, Tensor) else None


def _has_effect(node: Node) -> bool:
    """Whether running a node matters though nobody reads its result."""
    return node.is_impure()


def _append(
    graph: Graph, loop: TracedLoop, inputs: Sequence[Node], results: Sequence[Node]
) -> list[Node]:
    """The node of the loop behind its body, and those of its results."""
    node = graph.call_function(loop, tuple(inputs))
    # What is carried was copied where the program calls the loop.
    first = inputs[0]
    node.meta = {**first.meta, "val": [result.meta["val"] for result in results]}
    items = [
        graph.call_function(operator.getitem, (node, index))
        for index in range(len(results))
    ]
    for item, result in zip(items, results, strict=True):
        item.meta = {**first.meta, "val": result.meta["val"]}
    return items


def _redirect(
    inside: Sequence[Node], items: dict[Node, Node], owners: dict[int | None, Node]
) -> None:
    """Let tensors stand for the results of the loop, not for those of a round.

    What the body overwrites in place is read from where it is.
    """
    own = set(inside)
    for tensor, slot in list(_tracer().tensor_tracker.items()):
        proxy = getattr(slot, "proxy", None)
        if proxy is None or proxy.node not in own:
            continue
        found = items.get(proxy.node) or owners.get(tensor.untyped_storage()._cdata)
        if found is not None:
            proxy.node = found
