"""Fuse dropout: random masks are drawn where they are used and never kept.

Frameworks draw a mask, scale it and multiply with it, in the forward pass and again in
the backward one, for which they keep it. On the machine dropout is one op that draws
the numbers as it goes; the backward pass draws the same ones from the same seed
(graphcore/popart, willow/src/op/dropout.cpp). So here: everything between the random
numbers and the products goes, and each product becomes a `dropout`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from popple.graph import Graph, Op, get_op

_SOURCES = frozenset({"bernoulli", "uniform"})
_FAMILIES = frozenset({"elementwise", "cast", "shape"})
"""Families of ops by which random numbers become a mask"""


@dataclass(frozen=True)
class FuseDropout:
    """Makes one op of each use of a mask. Runs first, on what was captured.

    `kept` are values that are read though no op of the graph reads them yet.
    """

    kept: frozenset[str] = frozenset()

    def apply(self, graph: Graph) -> Graph:
        """The graph without masks, but for those that are used in other ways."""
        return _fused(graph, self.kept).with_bodies(lambda g: _fused(g, frozenset()))


@dataclass
class _Mask:
    """A mask: the ops that make it, its values, and the ops that use it."""

    source: Op
    values: set[str]
    makers: list[Op] = field(default_factory=list[Op])
    uses: dict[str, str] = field(default_factory=dict[str, str])


def _fused(graph: Graph, kept: frozenset[str]) -> Graph:
    readers: defaultdict[str, list[Op]] = defaultdict(list)
    for op in graph.ops:
        for name in dict.fromkeys(op.inputs):
            readers[name].append(op)
    outside = kept | set(graph.outputs)
    masks = [
        mask
        for op in graph.ops
        if (start := _start(op)) and (mask := _Mask(op, {start}))
        if _follow(graph, mask, readers, outside)
    ]
    return _rewritten(graph, masks, readers) if masks else graph


def _start(op: Op) -> str:
    """The random numbers that may become a mask: those of dropout are one already."""
    if op.kind == "dropout" and len(op.outputs) > 1:
        return op.outputs[1]
    return next(iter(op.outputs), "") if op.kind in _SOURCES else ""


def _follow(
    graph: Graph, mask: _Mask, readers: dict[str, list[Op]], outside: Iterable[str]
) -> bool:
    """Find makers and uses; False if the numbers are read in another way too."""
    waiting, size = list(mask.values), graph.type_of(_start(mask.source)).num_elements
    while waiting:
        name = waiting.pop()
        if name in outside:
            return False
        for op in readers[name]:
            results = [graph.type_of(each).num_elements for each in op.outputs]
            if results != [size]:
                return False
            if dropped := _dropped_input(graph, op, mask.values):
                mask.uses[op.name] = dropped
            elif _is_maker(graph, op, mask.values):
                mask.makers.append(op)
                mask.values.add(op.outputs[0])
                waiting.append(op.outputs[0])
            else:
                return False
    return bool(mask.uses)


def _dropped_input(graph: Graph, op: Op, values: set[str]) -> str:
    """What a product with a mask, or a choice by one, drops elements of."""
    others = [name for name in op.inputs if name not in values]
    is_product = op.kind == "mul" and len(op.inputs) == 2 and len(others) == 1
    is_choice = op.kind == "select" and op.inputs[0] in values
    if not (is_product or is_choice) or graph.root(op.outputs[0]) in values:
        return ""
    size = graph.type_of(op.outputs[0]).num_elements
    whole = [n for n in others if graph.type_of(n).num_elements == size]
    # By a single number a mask is scaled, and it stays one.
    return whole[0] if whole else ""


def _is_maker(graph: Graph, op: Op, values: set[str]) -> bool:
    """Whether an op makes a mask of a mask: of nothing else but single numbers."""
    is_known = get_op(op.kind).family in _FAMILIES
    return is_known and all(
        name in values or graph.type_of(name).num_elements == 1 for name in op.inputs
    )


def _rewritten(
    graph: Graph, masks: Iterable[_Mask], readers: dict[str, list[Op]]
) -> Graph:
    gone: set[str] = set()
    uses: dict[str, str] = {}
    for mask in masks:
        gone.update(op.name for op in mask.makers)
        uses |= mask.uses
        if mask.source.kind != "dropout":
            gone.add(mask.source.name)
    # What only said how large a mask is goes with it.
    gone.update(
        op.name
        for op in graph.ops
        if op.kind == "fill" and readers[op.outputs[0]]
        if all(reader.name in gone for reader in readers[op.outputs[0]])
    )
    sources = {mask.source.name for mask in masks}
    ops = [_dropping(op, uses, sources) for op in graph.ops if op.name not in gone]
    return graph.with_ops(ops)


def _dropping(op: Op, uses: dict[str, str], sources: set[str]) -> Op:
    if dropped := uses.get(op.name):
        return replace(op, kind="dropout", inputs=(dropped,), attrs={})
    return replace(op, outputs=op.outputs[:1]) if op.name in sources else op
