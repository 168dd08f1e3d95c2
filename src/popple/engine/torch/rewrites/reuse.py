"""Reuse memory in a replayed step: operators write over operands at their last use.

Autograd adds gradients in place and layers may work in place, but a trace has all of
that as operators with results of their own. Here such results go where an operand was,
as they do eagerly: less memory is taken and touched, and the numbers are the same.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Graph, Node

from popple.engine.torch.rewrites.views import (
    Storage,
    changes_layouts,
    looks_alike,
    storage_of,
)

# These read and write one element at a time, too, though they do not say so.
_ELEMENTWISE = frozenset(
    {
        torch.ops.aten.index_add.default,
        torch.ops.aten.scatter_add.default,
        torch.ops.aten.threshold_backward.default,
    }
)


def reuse_memory(graph: Graph, owners: Mapping[Storage, Storage]) -> None:
    """Let operators overwrite operands that they are the last to read.

    `owners` tells of memory that has been replaced by other memory since tracing.
    """
    # Strides were noted when tracing; after a change in place they are no longer true.
    if changes_layouts(graph):
        return
    memory = _Memory(graph, owners)
    for position, node in enumerate(graph.nodes):
        form = _form_of(node)
        if form is None:
            continue
        operand = memory.find_free(node, position)
        if operand is not None:
            overload, name = form
            node.target = overload
            node.kwargs = {**node.kwargs, name: operand}
            memory.merge(node, operand)


class _Memory:
    """Who owns memory, and until when it is read."""

    def __init__(self, graph: Graph, owners: Mapping[Storage, Storage]) -> None:
        self._owners = dict(owners)
        self._last_read: dict[Storage, int] = {}
        # Memory that is the caller's, or is returned, must not be written to.
        self._kept: set[Storage] = {None}
        for position, node in enumerate(graph.nodes):
            if node.op in ("placeholder", "get_attr") or _is_foreign(node):
                self._kept.add(self._storage(node))
            for source in node.all_input_nodes:
                self._last_read[self._storage(source)] = position
                if node.op == "output":
                    self._kept.add(self._storage(source))

    def find_free(self, node: Node, position: int) -> Node | None:
        """An operand whose memory is the result's from this position on."""
        for operand in node.args:
            if not isinstance(operand, Node) or not looks_alike(operand, node):
                continue
            storage = self._storage(operand)
            is_free = self._last_read[storage] == position
            if is_free and storage not in self._kept and self._is_only(operand, node):
                return operand
        return None

    def merge(self, node: Node, operand: Node) -> None:
        """The node's result is where the operand was."""
        old, new = self._storage(operand), self._storage(node)
        # Readers of the result are now readers of the operand's memory.
        self._last_read[old] = self._last_read.get(new, -1)
        self._owners[new] = old
        if new in self._kept:
            self._kept.add(old)

    def _is_only(self, operand: Node, node: Node) -> bool:
        """Whether no other operand shares the operand's memory."""
        storage = self._storage(operand)
        others = (other for other in node.all_input_nodes if other is not operand)
        return all(self._storage(other) != storage for other in others)

    def _storage(self, node: Node) -> Storage:
        storage = storage_of(node)
        while storage in self._owners:
            storage = self._owners[storage]
        return storage


def _is_foreign(node: Node) -> bool:
    """Whether a value comes from an operator that may return memory it keeps."""
    if node.target is operator.getitem:
        return any(map(_is_foreign, node.all_input_nodes))
    is_call = node.op == "call_function"
    return is_call and getattr(node.target, "namespace", "") != "aten"


def _form_of(node: Node) -> tuple[Any, str] | None:
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    return _writing_form(node.target)


@functools.cache
def _writing_form(overload: Any) -> tuple[Any, str] | None:
    """The form of an operator that is told where to write, and how it is told."""
    tags, schema = overload.tags, overload._schema
    is_elementwise = torch.Tag.pointwise in tags or overload in _ELEMENTWISE
    if not is_elementwise or torch.Tag.nondeterministic_seeded in tags:
        return None
    if schema.is_mutable or any(r.alias_info is not None for r in schema.returns):
        return None
    wanted = [(a.name, str(a.type)) for a in schema.arguments]
    packet = overload.overloadpacket
    for form in (getattr(packet, name) for name in packet.overloads()):
        *given, last = form._schema.arguments
        is_written = last.alias_info is not None and last.alias_info.is_write
        if is_written and [(a.name, str(a.type)) for a in given] == wanted:
            return form, last.name
    return None
