"""Replay: a traced graph as a plain function over flat tensors.

The graph is copied, freed of what a run does not need and made into a function: by
default straight-line Python. It runs below autograd: what it calls are the framework's
kernels, nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.graph import CodeGen

from popple.capture.torch import TracedLoop, all_nodes, is_random
from popple.engine.torch.checks import FloatingPointChecks
from popple.engine.torch.half_products import use_float_products
from popple.engine.torch.numerics import Arithmetic, use_arithmetic
from popple.engine.torch.rewrites.reuse import reuse_memory
from popple.engine.torch.rewrites.views import (
    Storage,
    drop_idle_views,
    overwrites,
    storage_of,
)
from popple.engine.torch.rewrites.weight_copies import WeightCopies, hoist_copies
from popple.engine.torch.straight_line import straight_line
from popple.marks import MARK, operator_name

MakeFunction = Callable[[GraphModule], Callable[..., Sequence[Any]]]
"""Makes a graph into a function over flat tensors."""

_BOOKKEEPING = frozenset({torch.ops.aten.detach.default, torch.ops.aten.alias.default})


@dataclass(frozen=True)
class Replay:
    """A step ready to run: takes and returns flat sequences of tensors.

    `shared_outputs` are the results that share memory with an argument or an earlier
    result; they are copied before anyone else sees them. `graph` is what the function
    was made of, if it was made of one. Behind its arguments the function takes the
    `copies` of weights.
    """

    function: Callable[..., Sequence[Any]]
    shared_outputs: frozenset[int]
    graph: Graph | None = None
    copies: WeightCopies = field(default_factory=lambda: WeightCopies(()))

    def __call__(self, arguments: Sequence[Tensor]) -> list[Any]:
        """Run once; overwrites arguments that the step overwrites.

        The results share memory with nothing else, not even with each other.
        """
        results = list(self.function(*arguments, *self.copies.of(arguments)))
        for index in self.shared_outputs:
            results[index] = results[index].clone()
        return results

    def with_checks(self) -> Replay:
        """A Replay that stops at the first operator that makes an inf or a NaN."""

        def checked(*arguments: Tensor) -> Sequence[Any]:
            with FloatingPointChecks():
                return self.function(*arguments)

        return replace(self, function=checked)


def build_replay(
    traced: GraphModule,
    kept: Iterable[Node] = (),
    arithmetic: Arithmetic | None = None,
    make_function: MakeFunction | None = None,
    num_weights: int = 0,
) -> Replay:
    """A Replay of the traced graph, which is left as it is.

    `kept` are nodes of the graph, arguments or constants, that a run must not change
    though the graph writes to them: it writes to copies. Operators of float16 compute
    by `arithmetic`, if given. `make_function` makes the function of the Replay; by
    default it is straight-line Python. The first `num_weights` arguments are weights,
    which change from one update to the next only.
    """
    graph = copy.deepcopy(traced.graph)
    graph.set_codegen(CodeGen())
    owners = _drop_marks(graph)
    shared = _shared_outputs(graph, owners)
    _drop_bookkeeping(graph)
    _write_to_copies(graph, {node.name for node in kept})
    drop_idle_views(graph)
    graph.eliminate_dead_code(is_impure_node=_has_effect)
    _prepare_loops(graph, arithmetic)
    if arithmetic is not None:
        use_arithmetic(graph, arithmetic)
    else:
        use_float_products(graph)
        # Views of halves whose readers have come to read views of float32 copies.
        graph.eliminate_dead_code(is_impure_node=_has_effect)
    copies = WeightCopies(hoist_copies(graph, num_weights))
    # A compiler plans memory itself; it takes the graph before operators write in
    # place.
    if make_function is not None:
        function = make_function(GraphModule(traced, graph))
        return Replay(function, shared, graph, copies)
    if arithmetic is None:
        # Not with `use_arithmetic`, which replaces operators by functions without such
        # forms.
        reuse_memory(graph, owners)
    function = straight_line(GraphModule(traced, graph))
    return Replay(function, shared, graph, copies)


@dataclass(frozen=True, eq=False)
class PreparedLoop:
    """A loop whose body is a function."""

    loop: TracedLoop
    body: Callable[..., Sequence[Any]]

    __name__ = "loop"  # FX calls the node so

    def __call__(self, *inputs: Any) -> list[Any]:
        """Run the loop."""
        return self.loop.run(self.body, inputs)


def _prepare_loops(graph: Graph, arithmetic: Arithmetic | None) -> None:
    """Let the loops of a graph run their bodies as functions."""
    for node in graph.nodes:
        if isinstance(node.target, TracedLoop):
            body = _body_function(node.target.body, arithmetic)
            node.target = PreparedLoop(node.target, body)


def _body_function(
    body: GraphModule, arithmetic: Arithmetic | None
) -> Callable[..., Sequence[Any]]:
    """The body of a loop as a function: one round of it."""
    graph = copy.deepcopy(body.graph)
    graph.set_codegen(CodeGen())
    _drop_bookkeeping(graph)
    drop_idle_views(graph)
    _prepare_loops(graph, arithmetic)
    if arithmetic is not None:
        use_arithmetic(graph, arithmetic)
    else:
        use_float_products(graph)
    return straight_line(GraphModule(body, graph))


def below_autograd() -> Any:
    """A context in which operators go straight to their kernels."""
    return torch._C._AutoDispatchBelowAutograd()


def _drop_bookkeeping(graph: Graph) -> None:
    for node in list(graph.nodes):
        if node.target in _BOOKKEEPING:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _drop_marks(graph: Graph) -> dict[Storage, Storage]:
    """Let the readers of marked tensors read what was marked.

    A mark returns a copy; it is dropped where nobody could tell. Returns which memory
    takes the place of the copies.
    """
    written = {
        storage_of(source) for node in graph.nodes for source in _overwritten(node)
    }
    owners: dict[Storage, Storage] = {}
    for node in list(graph.nodes):
        if operator_name(node.target) != MARK:
            continue
        source, own = node.args[0], storage_of(node)
        owner = owners.get(storage_of(source), storage_of(source))
        # A copy of a view is laid out densely; readers may depend on its strides.
        is_dense = node.meta["val"].stride() == source.meta["val"].stride()
        if is_dense and written.isdisjoint({own, owner, storage_of(source)}):
            owners[own] = owner
            node.replace_all_uses_with(source)
            graph.erase_node(node)
    return owners


def _overwritten(node: Node) -> list[Node]:
    """What a node may write to."""
    is_call = node.op == "call_function"
    return node.all_input_nodes if is_call and _has_effect(node) else []


def _write_to_copies(graph: Graph, names: set[str]) -> None:
    copies: dict[Any, Node] = {}  # several nodes may stand for one constant
    first_step = next(n for n in graph.nodes if n.op != "placeholder")
    for node in [n for n in graph.nodes if n.name in names]:
        users = list(node.users)
        if node.target not in copies:
            with graph.inserting_before(first_step):
                source = node if node.op == "placeholder" else graph.node_copy(node)
                clone = torch.ops.aten.clone.default
                copies[node.target] = graph.call_function(clone, (source,))
        for user in users:
            user.replace_input_with(node, copies[node.target])


def _has_effect(node: Node) -> bool:
    """Whether a node matters though nobody reads it: it writes, or draws numbers.

    Unread random numbers are still drawn, so that seeds mean what they mean eagerly.
    """
    if node.op in ("placeholder", "output"):
        return True
    if isinstance(node.target, TracedLoop):
        return bool(node.target.written) or any(
            _has_effect(inner)
            for inner in all_nodes(node.target.body.graph)
            if inner.op == "call_function"
        )
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    return overwrites(node) or is_random(node)


def _shared_outputs(graph: Graph, owners: dict[Storage, Storage]) -> frozenset[int]:
    """Results whose memory is an argument's or an earlier result's.

    `owners` tells of memory that has been replaced by other memory.
    """
    seen = {storage_of(n) for n in graph.nodes if n.op in ("placeholder", "get_attr")}
    shared: set[int] = set()
    results: Any = graph.output_node().args[0]
    for index, node in enumerate(results):
        storage = storage_of(node) if isinstance(node, Node) else None
        if storage is None:
            continue
        storage = owners.get(storage, storage)
        if storage in seen:
            shared.add(index)
        seen.add(storage)
    return frozenset(shared)
