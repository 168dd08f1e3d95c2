"""Convolutions side by side: grouped, gathered, merged."""

from __future__ import annotations

import math
from dataclasses import replace

from popple.graph import DType, Graph, Op, Phase, Role, TensorType, Value
from popple.plan import plan_graph
from popple.plan.planner import Planner
from popple.plan.side_by_side import group_of, place_side_by_side
from popple.program import Execute, Sequence, Step, combine
from popple.target import load_target

FIELD, KERNEL = (4, 64, 16, 16), (64, 64, 1, 1)
TARGET = load_target("gc200")


def value(name: str, shape: tuple[int, ...], role: Role = Role.ACTIVATION) -> Value:
    return Value(name, TensorType(DType.F16, shape), role)


def make_graph(group: str, chained: bool = False) -> Graph:
    """Two convolutions with a gradient each, something between them."""
    window = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    attrs = {**window, "multi_conv": group} if group else window
    second = "middle" if chained else "x1"
    ops = (
        Op("a", "conv", ("x0", "w0"), ("y0",), attrs),
        Op("relu", "relu", ("y0",), ("middle",)),
        Op("b", "conv", (second, "w1"), ("y1",), attrs),
        Op("ga", "conv_input_grad", ("y0", "w0"), ("g0",), window, Phase.BACKWARD),
        Op("gb", "conv_input_grad", ("y1", "w1"), ("g1",), window, Phase.BACKWARD),
    )
    given = [value(n, FIELD, Role.STATE) for n in ("x0", "x1")]
    given += [value(n, KERNEL, Role.WEIGHT) for n in ("w0", "w1")]
    made = [value(n, FIELD) for n in ("y0", "middle", "y1", "g0", "g1")]
    values = {v.name: v for v in (*given, *made)}
    return Graph("g", values, ops, ("middle", "g0", "g1"))


def placed(graph: Graph) -> tuple[Op, ...]:
    return place_side_by_side(graph, Planner(TARGET)).ops


def test_members_run_in_a_row_on_tiles_of_their_own() -> None:
    ops = placed(make_graph("block"))
    assert [op.name for op in ops] == ["a", "b", "relu", "ga", "gb"]
    tiles = {op.name: op.attrs["tiles"] for op in ops if "tiles" in op.attrs}
    assert set(tiles) == {"a", "b", "ga", "gb"}
    assert tiles["a"] != tiles["b"]


def test_passes_are_groups_of_their_own() -> None:
    groups = {op.name: group_of(op) for op in placed(make_graph("block"))}
    assert groups["a"] == groups["b"] != groups["ga"] == groups["gb"]
    assert groups["relu"] == ""


def test_what_depends_on_each_other_runs_in_turn() -> None:
    graph = make_graph("block", chained=True)
    assert placed(graph) == graph.ops
    assert placed(make_graph("")) == make_graph("").ops


def test_gradients_share_tiles_as_the_program_wishes() -> None:
    graph = make_graph("block")
    wishes = {"reserved_tiles": 700, "cycle_back_off": 0.0}
    marked = [
        replace(op, attrs={**op.attrs, **wishes}) if op.kind == "conv" else op
        for op in graph.ops
    ]
    ops = placed(graph.with_ops(marked))
    for op in (op for op in ops if "tiles" in op.attrs):
        assert op.attrs["reserved_tiles"] == 700
    tiles = next(op.attrs["tiles"] for op in ops if op.name == "gb")
    assert isinstance(tiles, tuple)
    assert int(tiles[1]) <= TARGET.chip.num_tiles - 700


def compute_phases(step: Step) -> list[Execute]:
    if isinstance(step, Sequence):
        return [found for inner in step.steps for found in compute_phases(inner)]
    return [step] if isinstance(step, Execute) else []


def test_merged_phases_hold_the_vertices_of_all() -> None:
    alone, together = (
        compute_phases(plan_graph(make_graph(group), TARGET).program.main)
        for group in ("", "block")
    )
    assert len(together) < len(alone)
    partials = [s for s in together if s.compute_set.name.endswith("/partials")]
    assert [len(s.compute_set.vertices) for s in partials] == [2, 2]
    # Members lie on different tiles: no tile has vertices of both.
    first, second = (g.count_by_tile for g in partials[0].compute_set.vertices)
    assert combine(math.prod, [first, second]).is_zero
