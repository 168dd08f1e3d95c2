"""What a program does once, and what in every trip of its loops.

The Graph is one micro-batch, repeated. What the program does before and after its own
loops happens once in a run: of that only what the loops need is kept, the rest weighs
nothing against them. What it does in an outer loop behind the inner one happens once
for several micro-batches, as the update does, and belongs to that phase; so does what
it does to gradients behind all loops, where a run makes one update.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from popple.graph import Graph, Op, Phase


def as_repeated(
    graph: Graph, depths: Sequence[int], gradients: Iterable[str] = ()
) -> Graph:
    """The graph of the innermost loop; `depths` counts the loops around each op.

    `gradients` are what optimisers update weights with, in or behind the loops.
    """
    # A program that loops nowhere is one micro-batch by itself: nothing is to be
    # sorted.
    innermost = max(depths, default=0)
    if innermost == 0:
        return graph
    needed = _needed_inside(graph.ops, depths, innermost)
    updating = _needed_outside(graph.ops, depths, innermost, gradients)
    ops: list[Op] = []
    for op, depth in zip(graph.ops, depths, strict=True):
        if depth == innermost or not needed.isdisjoint(op.outputs):
            ops.append(op)
        elif depth > 0 or not updating.isdisjoint(op.outputs):
            # Once for several micro-batches: that is how often the update phase runs.
            ops.append(replace(op, phase=Phase.UPDATE))
    made = {name for op in ops for name in op.outputs}
    gone = {name for op in graph.ops for name in op.outputs} - made
    # Outputs of ops that were left out would name values that no op makes.
    outputs = tuple(name for name in graph.outputs if name not in gone)
    values = {name: v for name, v in graph.values.items() if name not in gone}
    return replace(graph, ops=tuple(ops), outputs=outputs, values=values)


def _needed_inside(
    ops: Sequence[Op], depths: Sequence[int], innermost: int
) -> set[str]:
    """Values that the innermost loop reads, and those they are made of."""
    needed: set[str] = set()
    for op, depth in zip(reversed(ops), reversed(depths), strict=True):
        if depth == innermost or not needed.isdisjoint(op.outputs):
            needed.update(op.inputs)
    return needed


def _needed_outside(
    ops: Sequence[Op], depths: Sequence[int], innermost: int, gradients: Iterable[str]
) -> set[str]:
    """Values outside of the innermost loop that gradients are made of."""
    needed = set(gradients)
    for op, depth in zip(reversed(ops), reversed(depths), strict=True):
        if depth < innermost and not needed.isdisjoint(op.outputs):
            needed.update(op.inputs)
    return needed
