"""Convolutions that run side by side: each gets tiles of its own.

In: a graph in which `place.GroupConvolutions` named the ops that run at the same time.
Out: the share of the chip's tiles that the plan of each of them may use, by op name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from popple.graph import Graph, MultiConv, Op
from popple.plan.conv.sharing import Rival, SharingOptions, share_tiles
from popple.plan.opplan import Share
from popple.plan.planner import Planner
from popple.plan.rules.conv import find_problem


def share_side_by_side(graph: Graph, planner: Planner) -> Mapping[str, Share]:
    """The tiles of every op that does not run alone, by its name."""
    units: defaultdict[str, list[Op]] = defaultdict(list)
    for op in graph.ops:
        if op.notes.side_by_side:
            units[op.notes.side_by_side].append(op)
    shares: dict[str, Share] = {}
    for members in units.values():
        shares |= _share_unit(graph, members, planner)
    return shares


def _share_unit(graph: Graph, members: list[Op], planner: Planner) -> dict[str, Share]:
    """Tiles for each op of one unit, as the program wishes they be dealt."""
    # Tiles are dealt before anything is laid out: operands are taken to lie as wished.
    requests = [planner.request(graph.signature(op), (None, None)) for op in members]
    rivals = [Rival(find_problem(r), r.options.memory_proportion) for r in requests]
    options = _options(members[0].notes.multi_conv)
    shares = share_tiles(rivals, planner.target.chip, options)
    return {op.name: share for op, share in zip(members, shares, strict=True)}


def _options(wish: MultiConv | None) -> SharingOptions:
    """How tiles are dealt; what the program did not say is as in PopLibs."""
    default = SharingOptions()
    if wish is None:
        return default
    tiles, back_off = wish.reserved_tiles, wish.cycle_back_off
    return SharingOptions(
        default.reserved_tiles if tiles is None else tiles,
        default.cycle_back_off if back_off is None else back_off,
    )
