"""Group independent convolutions, so that they run at the same time.

A program declares forward convolutions independent of each other (`Notes.multi_conv`).
Those of one group, and their gradients of one kind, become a unit: they stand next to
each other in the order of execution and `Notes.side_by_side` names their unit. How many
tiles each gets is for the planner to decide (`plan/side_by_side.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from popple.graph import Graph, Op, TensorType, find_dependencies

_GRADIENTS = ("conv_input_grad", "conv_weight_grad")


@dataclass(frozen=True)
class GroupConvolutions:
    """Puts the convolutions of each group, and their gradients, in a row.

    Runs after `Schedule`, which would move them apart again.
    """

    def apply(self, graph: Graph) -> Graph:
        """The grouped graph; the same if ops of a group depend on each other."""
        return _grouped(graph).with_bodies(_grouped)


def _grouped(graph: Graph) -> Graph:
    units = {name: ops for name, ops in _find_units(graph).items() if len(ops) > 1}
    order = _find_order(graph, units) if units else None
    if order is None:
        return graph
    grouped = {
        op.name: replace(op, notes=replace(op.notes, side_by_side=name))
        for name, members in units.items()
        for op in members
    }
    return graph.with_ops(grouped.get(op.name, op) for op in order)


def _find_units(graph: Graph) -> dict[str, list[Op]]:
    """Convolutions and gradients by unit, gradients with the notes of their group."""
    # A gradient is found by the operand it shares with its forward convolution and the
    # type of the other one, which it is the gradient of.
    by_operands: dict[tuple[str, TensorType], Op] = {}
    units: defaultdict[str, list[Op]] = defaultdict(list)
    for op in graph.ops:
        if op.kind == "conv" and op.notes.multi_conv is not None:
            units[_unit_name(op.notes.multi_conv.group, op)].append(op)
            field, kernel = op.inputs
            by_operands[graph.root(kernel), graph.type_of(field)] = op
            by_operands[graph.root(field), graph.type_of(kernel)] = op
    for op in graph.ops if by_operands else ():
        if op.kind in _GRADIENTS:
            key = graph.root(op.inputs[1]), graph.type_of(op.outputs[0])
            forward = by_operands.get(key)
            if forward is not None and (wish := forward.notes.multi_conv) is not None:
                own = op.notes.multi_conv or wish
                noted = replace(op, notes=replace(op.notes, multi_conv=own))
                units[_unit_name(wish.group, op)].append(noted)
    return dict(units)


def _unit_name(group: str, op: Op) -> str:
    """Passes run at different times, and so does a forward pass run once more."""
    return f"{group} {op.kind} {op.phase.value} {op.stage}"


def _find_order(graph: Graph, units: Mapping[str, list[Op]]) -> list[Op] | None:
    """The ops with the members of each unit in a row; None if that cannot be.

    An op without a unit is a unit of its own.
    """
    names = {op.name: name for name, members in units.items() for op in members}
    members: dict[str, list[Op]] = {}
    unit_of: list[str] = []
    for op in graph.ops:
        unit_of.append(names.get(op.name, f"op {op.name}"))
        members.setdefault(unit_of[-1], []).append(op)
    order = _sorted(members, _unit_dependencies(graph, unit_of))
    return None if order is None else [op for unit in order for op in members[unit]]


def _unit_dependencies(graph: Graph, unit_of: list[str]) -> dict[str, list[str]]:
    """Units that must run before each unit; `unit_of` has that of every op."""
    found: dict[str, dict[str, None]] = {unit: {} for unit in unit_of}
    for unit, positions in zip(
        unit_of, find_dependencies(graph, graph.ops), strict=True
    ):
        found[unit].update((unit_of[position], None) for position in positions)
        found[unit].pop(unit, None)
    return {unit: list(before) for unit, before in found.items()}


def _sorted(units: Iterable[str], before: Mapping[str, list[str]]) -> list[str] | None:
    """Units after those before them, else in their order; None if one waits for itself.

    Depth first with a stack of its own: chains of ops are longer than Python recurses.
    """
    done: dict[str, None] = {}
    begun: set[str] = set()
    for first in units:
        stack = [first]
        while stack:
            unit = stack[-1]
            missing = [other for other in before[unit] if other not in done]
            if unit in done or not missing:
                done[stack.pop()] = None
            elif unit in begun:
                return None
            else:
                begun.add(unit)
                stack += reversed(missing)
    return list(done)
