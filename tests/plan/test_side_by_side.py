"""Convolutions side by side: their tiles, and the phases they share."""

from __future__ import annotations

import math
from dataclasses import replace

from popple.graph import (
    DType,
    Graph,
    MultiConv,
    Notes,
    Op,
    Role,
    TensorType,
    Value,
)
from popple.place import GroupConvolutions
from popple.plan import plan_graph
from popple.plan.planner import Planner
from popple.plan.side_by_side import share_side_by_side
from popple.program import Execute, Sequence, Step, combine
from popple.target import load_target
from tests.place.graphs import two_convolutions

TARGET = load_target("gc200")
POINTWISE = {"padding": (0, 0), "groups": 1}
AROUND = {"padding": (1, 1), "groups": 1}


def grouped(group: str) -> Graph:
    return GroupConvolutions().apply(two_convolutions(group))


def test_members_have_tiles_of_their_own() -> None:
    shares = share_side_by_side(grouped("block"), Planner(TARGET))
    assert set(shares) == {"a", "b", "ga", "gb"}
    first, second = sorted(
        [shares["a"], shares["b"]], key=lambda share: share.first_tile
    )
    assert first.first_tile + first.num_tiles <= second.first_tile


def test_ops_that_run_alone_have_no_share() -> None:
    assert share_side_by_side(grouped(""), Planner(TARGET)) == {}


def test_tiles_are_dealt_as_the_program_wishes() -> None:
    wish = MultiConv("block", reserved_tiles=700, cycle_back_off=0.0)
    graph = grouped("block")
    noted = [
        replace(op, notes=replace(op.notes, multi_conv=wish))
        if op.notes.multi_conv
        else op
        for op in graph.ops
    ]
    shares = share_side_by_side(graph.with_ops(noted), Planner(TARGET))
    assert shares["gb"].num_tiles <= TARGET.chip.num_tiles - 700


def test_equal_members_are_planned_on_different_tiles() -> None:
    graph = grouped("block")
    signatures = {graph.signature(op) for op in graph.ops if op.kind == "conv"}
    assert len(signatures) == 1
    plans = plan_graph(graph, TARGET).plans
    assert plans["a"].outputs != plans["b"].outputs


def compute_phases(step: Step) -> list[Execute]:
    if isinstance(step, Sequence):
        return [found for inner in step.steps for found in compute_phases(inner)]
    return [step] if isinstance(step, Execute) else []


def test_merged_phases_hold_the_vertices_of_all() -> None:
    alone, together = (
        compute_phases(plan_graph(grouped(group), TARGET).program.main)
        for group in ("", "block")
    )
    assert len(together) < len(alone)
    partials = [s for s in together if s.compute_set.name.endswith("/partials")]
    assert [len(s.compute_set.vertices) for s in partials] == [2, 2]
    # Members lie on different tiles: no tile has vertices of both.
    first, second = (g.count_by_tile for g in partials[0].compute_set.vertices)
    assert combine(math.prod, [first, second]).is_zero


def half(name: str, *shape: int, role: Role = Role.ACTIVATION) -> Value:
    return Value(name, TensorType(DType.F16, shape), role)


def test_tiles_run_different_vertices_in_one_phase() -> None:
    # Kernels of 1x1 and of 3x3 have vertices of their own.
    notes = Notes(multi_conv=MultiConv("block"))
    once = {"stride": (1, 1), "dilation": (1, 1)}
    ops = (
        Op("a", "conv", ("x", "u"), ("y",), once | POINTWISE, notes=notes),
        Op("b", "conv", ("x", "v"), ("z",), once | AROUND, notes=notes),
    )
    values = (
        half("x", 4, 16, 32, 32, role=Role.STATE),
        half("u", 32, 16, 1, 1, role=Role.WEIGHT),
        half("v", 32, 16, 3, 3, role=Role.WEIGHT),
        half("y", 4, 32, 32, 32),
        half("z", 4, 32, 32, 32),
    )
    graph = Graph("g", {value.name: value for value in values}, ops, ("y", "z"))
    program = plan_graph(GroupConvolutions().apply(graph), TARGET).program
    kinds = [
        {group.codelet.name for group in phase.compute_set.vertices}
        for phase in compute_phases(program.main)
    ]
    assert max(map(len, kinds)) == 2
