"""Operators of float16 computed in float32: operands converted, results rounded.

    h = mm(a, b)   -->   h = to_half(mm(to_float(a), to_float(b)))

The machine multiplies halves and adds in float32, which is what this computes: a result
is the float32 one, rounded once. Values between operators stay float16, as the program
has them, so memory does not grow; a copy in float32 serves all readers of one pass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.fx import Graph, Node

from popple.capture.torch.tags import Tag
from popple.engine.torch.rewrites.views import overwrites, storage_of
from popple.graph import Phase
from popple.marks import TAG

HALF, SINGLE = torch.float16, torch.float32
COPY = "float32 copy"
"""Key in the meta data of copies that are made here: nothing writes to them."""

Choice = Callable[[Node], bool]
"""Whether a node is to compute in float32."""

Rounding = Callable[[Graph, Node, Tensor], Node]
"""Adds what makes float32 numbers float16, laid out as a traced value is."""

aten = torch.ops.aten
_PARTS = frozenset(
    {
        aten.split.Tensor,
        aten.split_with_sizes.default,
        aten.unbind.int,
        aten.chunk.default,
    }
)


def to_nearest(graph: Graph, wide: Node, like: Tensor) -> Node:
    """Round to the nearest float16."""
    settings: dict[str, Any] = {"dtype": HALF}
    if (form := _format_of(like)) is not None:
        settings["memory_format"] = form
    return graph.call_function(aten._to_copy.default, (wide,), settings)


def laid_out_like(graph: Graph, wide: Node, like: Tensor) -> Node:
    """A result as it was traced: kernels of float32 may lay it out otherwise."""
    form: Any = _format_of(like)
    if form is None:
        return wide
    return graph.call_function(_laid_out, (wide, form))


def _laid_out(x: Tensor, form: torch.memory_format) -> Tensor:
    return x.contiguous(memory_format=form)


def _format_of(value: Tensor) -> torch.memory_format | None:
    """The format that views were traced of, where it has a name."""
    if value.is_contiguous():
        return torch.contiguous_format
    is_last = value.dim() == 4 and value.is_contiguous(
        memory_format=torch.channels_last
    )
    return torch.channels_last if is_last else None


def compute_in_float(
    graph: Graph,
    is_chosen: Choice,
    rounding: Rounding,
    forms: Mapping[Any, Callable[..., Any]] = MappingProxyType({}),
) -> None:
    """Let the chosen operators compute in float32 and round their float16 results.

    Those that have a form of their own among `forms`, and take float16, compute by it.
    """
    widener = _Widener(graph, rounding, forms)
    for node in list(graph.nodes):
        if node.op == "call_function" and is_chosen(node):
            widener.widen(node)
        elif overwrites(node):
            widener.forget(node.all_input_nodes)


def makes_or_takes_half(node: Node) -> bool:
    """Whether an operand or a result is float16."""
    return is_half(node) or any(map(is_half, node.all_input_nodes))


def is_half(node: Node) -> bool:
    """Whether a value, or a part of it, is float16."""
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(leaf, Tensor) and leaf.dtype is HALF for leaf in leaves)


class _Widener:
    """Rewrites nodes of a graph, from its first to its last."""

    def __init__(
        self,
        graph: Graph,
        rounding: Rounding,
        forms: Mapping[Any, Callable[..., Any]],
    ) -> None:
        self._graph = graph
        self._rounding = rounding
        self._forms = forms
        self._copies: dict[tuple[Node, bool], Node] = {}
        self._is_backward = False

    def forget(self, written: list[Node]) -> None:
        """Copies of what is written to are no longer true."""
        storages = set(map(storage_of, written))
        for key in [k for k in self._copies if storage_of(k[0]) in storages]:
            del self._copies[key]

    def widen(self, node: Node) -> None:
        """Let a node compute in float32; its readers get float16 as before."""
        tag = node.meta.get(TAG)
        self._is_backward = isinstance(tag, Tag) and tag.phase is Phase.BACKWARD
        with self._graph.inserting_before(node):
            args, kwargs = pytree.tree_map(self._lifted, (node.args, node.kwargs))
        if any(map(is_half, node.all_input_nodes)):
            node.target = self._forms.get(node.target, node.target)
        value = node.meta["val"]
        if not isinstance(value, Tensor):
            node.args, node.kwargs = args, kwargs
            self._round_parts(node)
            return
        with self._graph.inserting_before(node):
            wide = self._graph.call_function(node.target, args, kwargs)  # pyright: ignore
            wide.meta[TAG] = tag
        if value.dtype is HALF:
            self._round_into(node, wide)
        else:
            node.args, node.kwargs = args, kwargs
            self._graph.erase_node(wide)

    def _round_parts(self, node: Node) -> None:
        for part in list(node.users):
            value = part.meta.get("val")
            # What has no elements may carry more than numbers: a layer's tape.
            if not isinstance(value, Tensor) or value.dtype is not HALF:
                continue
            if value.numel():
                with self._graph.inserting_before(part):
                    item = (node, part.args[1])
                    wide = self._graph.call_function(operator.getitem, item)
                self._round_into(part, wide)

    def _round_into(self, node: Node, wide: Node) -> None:
        """Make a node the rounded form of another."""
        with self._graph.inserting_before(node):
            rounded = self._rounding(self._graph, wide, node.meta["val"])
        node.target, node.args, node.kwargs = (
            rounded.target,
            rounded.args,
            rounded.kwargs,
        )
        self._graph.erase_node(rounded)

    def _lifted(self, leaf: Any) -> Any:
        """An argument in float32, if it is or names a float16."""
        if leaf is HALF:
            return SINGLE
        return self._lift(leaf) if isinstance(leaf, Node) else leaf

    def _lift(self, node: Node) -> Node:
        value = node.meta.get("val")
        if isinstance(value, Tensor) and (value.dtype is not HALF or not value.numel()):
            return node
        # Weights are the same in both passes; what forward made is kept as float16
        # between them, which is half of the memory.
        is_argument = node.op in ("placeholder", "get_attr")
        key = (node, self._is_backward and not is_argument)
        if key not in self._copies:
            self._copies[key] = self._new_copy(node)
        return self._copies[key]

    def _new_copy(self, node: Node) -> Node:
        source = _source_of(node)
        if source is not None and self._is_better_lifted(source, node):
            lifted = self._lift(source)
            args = pytree.tree_map(lambda a: lifted if a is source else a, node.args)
            return self._graph.call_function(node.target, args, node.kwargs)  # pyright: ignore
        widen: dict[str, Any] = {"dtype": SINGLE}
        copy = self._graph.call_function(aten._to_copy.default, (node,), widen)
        copy.meta[COPY] = True
        return copy

    def _is_better_lifted(self, source: Node, view: Node) -> bool:
        """Whether a view of the source's copy is better than a copy of the view."""
        value, shown = source.meta.get("val"), view.meta.get("val")
        if not isinstance(value, Tensor):  # a part of several, all of which are used
            return True
        # Strides of a copy are those of the source only then.
        if not _is_dense(value):
            return False
        is_whole = not isinstance(shown, Tensor) or shown.numel() >= value.numel()
        return is_whole or (source, self._is_backward) in self._copies


def _is_dense(value: Tensor) -> bool:
    """Whether the elements fill their memory, in whatever order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _source_of(view: Node) -> Node | None:
    """What a node is a view of, or a part of the views of."""
    if view.target is operator.getitem:
        parts = view.all_input_nodes[0]
        return parts if parts.target in _PARTS else None
    if not isinstance(view.target, torch._ops.OpOverload):
        return None
    schema = view.target._schema
    is_alias = bool(schema.returns) and all(r.alias_info for r in schema.returns)
    if not is_alias or schema.is_mutable or len(view.all_input_nodes) != 1:
        return None
    return view.all_input_nodes[0]
