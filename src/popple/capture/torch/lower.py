"""Lower a traced step to a Graph: one aten node becomes one or more ops.

How an aten operator is lowered is data: the table in `aten/` maps its name to a
Lowering. An operator without an entry becomes a `generic` op that carries its name.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from torch.fx import GraphModule, Node

from popple.capture.torch.aten import PLANNED, find_lowering
from popple.capture.torch.builder import GraphBuilder, NodeContext, tensor_type
from popple.capture.torch.control import TracedBranch, TracedLoop
from popple.capture.torch.tags import FIRST_BLOCK, NO_BLOCK, Tag
from popple.capture.torch.trace import TracedStep
from popple.errors import PlacementError
from popple.graph import Execution, Graph, Op, Phase, Role
from popple.marks import NOTES, TAG
from popple.place import RemoveDead

_SIDES = ("then", "otherwise")


@dataclass(frozen=True)
class LowerRequest:
    """A traced step with the names its inputs go by."""

    name: str
    step: TracedStep
    input_names: Sequence[str]


@dataclass(frozen=True)
class LoweredStep:
    """The Graph of a micro-batch, with the gradient value of each trained weight.

    `sources` are the traced nodes that values stand for.
    """

    graph: Graph
    gradients: Mapping[str, str]
    sources: Mapping[str, Node]


def lower_step(request: LowerRequest) -> LoweredStep:
    """The Graph of a traced step, without optimiser and repetition."""
    step = request.step
    builder = GraphBuilder()
    nodes = list(step.graph_module.graph.nodes)
    _declare_arguments(request, builder, [n for n in nodes if n.op == "placeholder"])
    _declare_constants(step.graph_module, builder)
    _lower_nodes(builder, nodes, step.branches)
    results = _output_arguments(nodes[-1])
    outputs = [builder.name_of(n) for n in results[: step.num_outputs]]
    gradients = {
        weight: builder.name_of(n)
        for weight, n in zip(step.trainable, results[step.num_outputs :], strict=True)
        if n is not None
    }
    graph = Graph(
        name=request.name,
        values=builder.values,
        ops=tuple(builder.ops),
        # A program may return one tensor twice; it leaves the chip once.
        outputs=tuple(dict.fromkeys(outputs)),
        execution=Execution(
            num_chips=1 + max((op.chip for op in builder.ops), default=0)
        ),
        functions=builder.functions,
    )
    # Gradients are not outputs yet: the update that reads them is added by a pass.
    live = RemoveDead(frozenset(gradients.values())).apply(graph)
    return LoweredStep(live, gradients, builder.sources)


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


def _declare_constants(traced: GraphModule, builder: GraphBuilder) -> None:
    """Tensors of the program's own; several nodes may stand for one of them."""
    first: dict[str, Node] = {}
    for node in traced.graph.find_nodes(op="get_attr"):
        path = str(node.target)
        if path in first:
            builder.bind(node, builder.name_of(first[path]))
            continue
        first[path] = node
        tensor: Tensor = operator.attrgetter(path)(traced)
        builder.declare(node, node.name, tensor, Role.CONSTANT)


def _lower_nodes(
    builder: GraphBuilder, nodes: Iterable[Node], branches: Iterable[TracedBranch]
) -> None:
    """Lower nodes in order; those of a branch become one op."""
    of_branch = {
        node: branch
        for branch in branches
        # A side whose values are read elsewhere has to be computed in any case: then
        # both sides stay ordinary ops with a select, as they are computed natively.
        if _is_closed(branch)
        for node in branch.nodes()
    }
    done: set[TracedBranch] = set()
    for node in nodes:
        if (branch := of_branch.get(node)) is None:
            if node.op == "call_function":
                _lower_node(builder, node)
        elif node in branch.results and branch not in done:
            # All nodes of both sides stand before the first that picks a result.
            done.add(branch)
            _lower_branch(builder, branch, node)


def _is_closed(branch: TracedBranch) -> bool:
    """Whether nobody but the branch itself reads what its sides compute."""
    sides = {*branch.then, *branch.otherwise}
    users = {user for node in sides for user in node.users}
    return users <= {*sides, *branch.results}


def _lower_branch(builder: GraphBuilder, branch: TracedBranch, node: Node) -> None:
    """Both sides as functions of what either of them reads from outside."""
    sides = (branch.then, branch.otherwise)
    returned = (branch.then_results, branch.other_results)
    own = {*branch.then, *branch.otherwise}
    read = [n for side in sides for each in side for n in each.all_input_nodes]
    given = [n for n in dict.fromkeys((*read, *returned[0], *returned[1]))]
    given = [n for n in given if n not in own and builder.has_name(n)]
    context = _context_of(builder, node)
    names = tuple(
        _lower_function(builder, label, given, side, results, ())
        for label, side, results in zip(_SIDES, sides, returned, strict=True)
    )
    types = [tensor_type(result.meta["val"]) for result in branch.results]
    inputs = [branch.condition, *given]
    made = context.emit("branch", inputs, types, attrs={"functions": names})
    for result, name in zip(branch.results, made, strict=True):
        builder.finish(result, name)


def _lower_loop(builder: GraphBuilder, node: Node, loop: TracedLoop) -> None:
    """A loop over a function; memory that its body overwrites is carried, too."""
    inputs = [n for n in node.args if isinstance(n, Node)]
    carried = [*range(loop.num_carried), *loop.written]
    # The Graph wants what a loop carries before what stays the same.
    order = [*carried, *(p for p in range(len(inputs)) if p not in carried)]
    body = loop.body.graph
    placeholders = body.find_nodes(op="placeholder")
    results = _output_arguments(body.output_node())
    name = _lower_function(
        builder,
        "loop",
        [placeholders[position] for position in order],
        [n for n in body.nodes if n.op == "call_function"],
        [*results, *(placeholders[position] for position in loop.written)],
        loop.branches,
    )
    given = [inputs[position] for position in order]
    context = _context_of(builder, node)
    types = [context.type_of(source) for source in given[: len(carried)]]
    kept = [builder.name_of(inputs[position]) for position in loop.written]
    made = context.emit(
        "repeat",
        given,
        types,
        storage=[*("" for _ in range(loop.num_carried)), *kept],
        attrs={"function": name, "count": loop.count},
    )
    # Readers of overwritten memory find it as the op left it.
    for position, value in zip(loop.written, made[loop.num_carried :], strict=True):
        builder.bind(inputs[position], value)
    context.finish([*made[: loop.num_carried]])


def _lower_function(
    builder: GraphBuilder,
    label: str,
    arguments: Sequence[Node],
    nodes: Sequence[Node],
    results: Sequence[Node],
    branches: Iterable[TracedBranch],
) -> str:
    """Nodes as a function of the graph; its name."""
    inner = builder.inner()
    for index, node in enumerate(arguments):
        inner.declare(node, f"arg{index}", node.meta["val"], Role.ARGUMENT)
    given = {inner.name_of(node) for node in arguments}
    _lower_nodes(inner, nodes, branches)
    outputs = [inner.name_of(node) for node in results]
    # A returned argument was overwritten in the body, or is returned as it came.
    outputs = [inner.newest_of(n) if n in given else n for n in outputs]
    return builder.add_function(label, inner, outputs)


def _context_of(builder: GraphBuilder, node: Node) -> NodeContext:
    """A node with its tag and the place of its block."""
    tag: Tag = node.meta.get(TAG, Tag(Phase.FORWARD, FIRST_BLOCK))
    # A function runs on the chip of the op that calls it.
    chip, stage = (0, 0) if builder.is_function else _place_of(tag)
    return NodeContext(builder, node, tag, chip, stage)


def _lower_node(builder: GraphBuilder, node: Node) -> None:
    if isinstance(node.target, TracedLoop):
        _lower_loop(builder, node, node.target)
        return
    if node.target is operator.getitem:
        source, index = node.args
        assert isinstance(source, Node)
        assert isinstance(index, int)
        builder.alias_item(node, source, index)
        return
    tag: Tag = node.meta.get(TAG, Tag(Phase.FORWARD, FIRST_BLOCK))
    neighbour = _find_neighbour(builder, node) if tag.block is None else None
    if builder.is_function:
        chip, stage = 0, 0
    elif neighbour is None:
        chip, stage = _place_of(tag)
    else:
        # It has no line of its own either; reports show the neighbour's.
        chip, stage = neighbour.chip, neighbour.stage
        tag = replace(tag, module=neighbour.module, line=neighbour.line)
    context = NodeContext(builder, node, tag, chip, stage)
    find_lowering(str(node.target))(context)
    if (notes := node.meta.get(NOTES)) is not None:
        builder.note(builder.name_of(node), notes, PLANNED)


def _place_of(tag: Tag) -> tuple[int, int]:
    """(chip, stage) of an op, as its block has them."""
    block = tag.block or FIRST_BLOCK
    if block is NO_BLOCK:
        raise PlacementError("an operator is in no block.", where=tag.line)
    return block.chip, block.stage


def _find_neighbour(builder: GraphBuilder, node: Node) -> Op | None:
    """The op beside which an op outside the user's code belongs.

    Sums of gradients have no forward partner: they belong where the gradient made
    last lies, which in the backward pass is the earliest stage.
    """
    makers = [builder.find_maker(source) for source in node.all_input_nodes]
    known = [op for op in makers if op is not None]
    return min(known, key=lambda op: op.stage, default=None)


def _output_arguments(output: Node) -> list[Any]:
    arguments = output.args[0]
    return list(arguments) if isinstance(arguments, (list, tuple)) else [arguments]
