"""Convolutions of one group run side by side, each on tiles of its own.

In: a graph in which forward convolutions that were declared independent share the
attribute `multi_conv`, with wishes of their own for `reserved_tiles` and
`cycle_back_off`. Out: the graph with their gradients grouped alike, groups next
to each other in the order of execution, and `tiles` for each of their ops: the share of
the chip that its plan may use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from popple.graph import Attr, Graph, Op, TensorType, get_op
from popple.plan.conv.sharing import Rival, Share, SharingOptions, share_tiles
from popple.plan.planner import Planner
from popple.plan.rules.conv import find_problem

GROUP = "multi_conv"
_WISHES = ("reserved_tiles", "cycle_back_off")
_GRADIENTS = ("conv_input_grad", "conv_weight_grad")


def place_side_by_side(graph: Graph, planner: Planner) -> Graph:
    """The graph with tiles dealt to the convolutions of every group."""
    groups = {name: ops for name, ops in _find_groups(graph).items() if len(ops) > 1}
    ops = _gathered(graph, groups) if groups else None
    if ops is None:
        return graph
    shared = {op.name: op for op in _share_all(graph, groups, planner)}
    return graph.with_ops(shared.get(op.name, op) for op in ops)


def group_of(op: Op) -> str:
    """The group whose ops run at the same time as this one, none if it runs alone."""
    return str(op.attrs.get(GROUP, "")) if "tiles" in op.attrs else ""


def _find_groups(graph: Graph) -> dict[str, list[Op]]:
    """Ops by group: forward convolutions, their input and their weight gradients."""
    by_operands: dict[tuple[str, TensorType], Op] = {}
    groups: defaultdict[str, list[Op]] = defaultdict(list)
    for op in graph.ops:
        if op.kind == "conv" and (name := str(op.attrs.get(GROUP, ""))):
            groups[_unit_name(name, op)].append(op)
            field, kernel = op.inputs
            by_operands[graph.root(kernel), graph.type_of(field)] = op
            by_operands[graph.root(field), graph.type_of(kernel)] = op
    for op in graph.ops if by_operands else ():
        if op.kind in _GRADIENTS:
            # What it is computed from, and what it is the gradient of.
            key = graph.root(op.inputs[1]), graph.type_of(op.outputs[0])
            if (forward := by_operands.get(key)) is not None:
                name = _unit_name(str(forward.attrs[GROUP]), op)
                groups[name].append(replace(op, attrs={**_wishes(forward), **op.attrs}))
    return dict(groups)


def _wishes(op: Op) -> dict[str, Attr]:
    """What a program said about the group of an op."""
    return {name: op.attrs[name] for name in _WISHES if name in op.attrs}


def _unit_name(group: str, op: Op) -> str:
    """Passes run at different times, and so does a forward pass run once more."""
    return f"{group} {op.kind} {op.phase.value} {op.stage}"


def _gathered(graph: Graph, groups: Mapping[str, list[Op]]) -> list[Op] | None:
    """The ops with the members of each group in a row; none if that cannot be."""
    unit_of = {op.name: name for name, members in groups.items() for op in members}
    units: dict[str, list[Op]] = {}
    for op in graph.ops:
        units.setdefault(unit_of.get(op.name, f"op {op.name}"), []).append(op)
    done = _sorted(units, _find_needs(graph, units))
    return None if done is None else [op for unit in done for op in units[unit]]


def _find_needs(graph: Graph, units: Mapping[str, list[Op]]) -> dict[str, list[str]]:
    """Units that must run before each: makers and readers of memory it touches."""
    unit_of = {op.name: unit for unit, members in units.items() for op in members}
    maker: dict[str, str] = {}
    readers: defaultdict[str, list[str]] = defaultdict(list)
    needs: dict[str, dict[str, None]] = {unit: {} for unit in units}
    for op in graph.ops:
        unit = unit_of[op.name]
        is_view = get_op(op.kind).is_view
        read = list(map(graph.root, op.inputs))
        written = [] if is_view else list(map(graph.root, op.outputs))
        names = (*op.inputs, *read, *written)  # as they are read: views come first
        before = [maker[name] for name in names if name in maker]
        before += [reader for name in written for reader in readers[name]]
        needs[unit].update(dict.fromkeys(before))
        needs[unit].pop(unit, None)
        for name in read:
            readers[name].append(unit)
        maker.update((name, unit) for name in (*op.outputs, *written))
    return {unit: list(found) for unit, found in needs.items()}


def _sorted(units: Iterable[str], needs: Mapping[str, list[str]]) -> list[str] | None:
    """Units after what they need, else in their order; none if one needs itself."""
    done: dict[str, None] = {}
    begun: set[str] = set()
    for first in units:
        stack = [first]
        while stack:
            unit = stack[-1]
            missing = [need for need in needs[unit] if need not in done]
            if unit in done or not missing:
                done[stack.pop()] = None
            elif unit in begun:
                return None
            else:
                begun.add(unit)
                stack += reversed(missing)
    return list(done)


def _share_all(
    graph: Graph, groups: Mapping[str, list[Op]], planner: Planner
) -> Iterator[Op]:
    """The members of all groups, each told its tiles."""
    for name, members in groups.items():
        requests = [
            planner.request(graph.signature(op), (None, None)) for op in members
        ]
        rivals = [Rival(find_problem(r), r.options.memory_proportion) for r in requests]
        shares = share_tiles(rivals, planner.target.chip, _options(members[0]))
        for op, share in zip(members, shares, strict=True):
            yield replace(op, attrs={**op.attrs, GROUP: name, **_attrs_of(share)})


def _options(op: Op) -> SharingOptions:
    """How the tiles of a group are dealt, by what is said on one of its members."""
    default = SharingOptions()
    return SharingOptions(
        int(_number(op, "reserved_tiles", default.reserved_tiles)),
        _number(op, "cycle_back_off", default.cycle_back_off),
    )


def _number(op: Op, name: str, default: float) -> float:
    value = op.attrs.get(name, default)
    return float(value) if isinstance(value, (int, float)) else default


def _attrs_of(share: Share) -> dict[str, Attr]:
    attrs: dict[str, Attr] = {"tiles": (share.first_tile, share.num_tiles)}
    if share.reference:
        attrs["reference_cycles"] = share.reference
    return attrs
