"""Checkpoints: results of forward ops that recomputation keeps.

In: the forward ops of a graph and what is asked for. Out: names of ops. They are those
that the user marked, or chosen as graphcore/popart chooses them (willow/src/
recompute.cpp); of the last stage, also all that no checkpoint is made of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from popple.graph import Graph, Op, Phase, Redone, get_op


def find_checkpoints(graph: Graph, redone: Redone, last: int) -> frozenset[str]:
    """Names of the forward ops whose results are kept; `last` is the last stage."""
    forward = [op for op in graph.ops if op.phase is Phase.FORWARD]
    kept = {op.name for op in forward if op.notes.is_checkpoint}
    if redone is Redone.NORMS:
        kept = {op.name for op in forward if get_op(op.kind).family != "norm"}
    if redone is Redone.STANDARD:
        kept |= _lowest_sets(graph, forward)
    return frozenset(
        kept | _behind_the_last([op for op in forward if op.stage == last], kept)
    )


def _behind_the_last(ops: Sequence[Op], kept: set[str]) -> set[str]:
    """Ops that no checkpoint is made of: their backward work follows at once.

    To redo them would free nothing (graphcore/popart, `setFinalFwdStageRecomputation`
    of transforms/pipeline.cpp and `allCheckpointAfterLastCheckpoint`).
    """
    needed: set[str] = set()
    behind: set[str] = set()
    for op in reversed(ops):
        if op.name not in kept and needed.isdisjoint(op.outputs):
            behind.add(op.name)
        else:
            needed.update(op.inputs)
    return behind


def _lowest_sets(graph: Graph, ops: Sequence[Op]) -> set[str]:
    """In each interval of ops, the results that are in memory when these are fewest."""
    live = list(_live_sets(ops))
    sizes = {op.name: _num_bytes(graph, op) for op in ops}
    kept: set[str] = set()
    for begin, end in decreasing_intervals(len(ops)):
        # The first of equals, as there.
        kept |= min(
            live[begin:end], key=lambda names: sum(map(sizes.__getitem__, names))
        )
    return kept


def _num_bytes(graph: Graph, op: Op) -> int:
    return sum(graph.type_of(name).num_bytes for name in op.outputs)


def _live_sets(ops: Sequence[Op]) -> Iterator[frozenset[str]]:
    """After each op, the op and those whose results later forward ops read."""
    makers = {name: op.name for op in ops for name in op.outputs}
    sources = [{makers[name] for name in op.inputs if name in makers} for op in ops]
    waiting = Counter(name for names in sources for name in names)
    live: set[str] = set()
    for op, names in zip(ops, sources, strict=True):
        waiting.subtract(names)
        live = {name for name in live if waiting[name]} | {op.name}
        yield frozenset(live)


def decreasing_intervals(count: int) -> list[tuple[int, int]]:
    """Intervals of so many ops that are shorter by one each, then of one op.

    Three quarters of the longest first interval that leaves room for all the others:
    what is redone early is alive longest, so that later intervals are shorter.
    """
    size = int(0.75 * (math.isqrt(2 * count) - 1))
    found: list[tuple[int, int]] = []
    begin = 0
    while begin < count:
        end = begin + max(size, 1)
        end = end if end <= count else begin + 1
        found.append((begin, end))
        begin, size = end, size - 1
    return found
