"""Values are laid out as their first reader wishes, else linearly and in turn."""

import pytest

from popple.errors import PlanError
from popple.graph import Graph, parse_graph
from popple.plan import Planner
from popple.plan.layout import Grouped, permuted
from popple.plan.lowering.plan_ops import PlannedOps, plan_ops
from tests.plan.graphs import linear_layer, pipeline, sharded
from tests.plan.machines import bow

BODY = "forward chip=0 stage=0"


def plan(graph: Graph) -> PlannedOps:
    return plan_ops(graph, Planner(bow(graph.execution.num_chips)))


def small(*lines: str) -> Graph:
    return parse_graph("\n".join(['graph "small" {', *lines, "}"]))


def test_a_weight_lies_as_the_matmul_wants_its_transpose() -> None:
    planned = plan(linear_layer())
    turned, weight = planned.mappings["wt"], planned.mappings["w"]
    assert isinstance(turned.layout.order, Grouped)
    assert turned.layout.views == ()
    assert weight.layout == turned.layout.viewed(permuted((96, 128), (1, 0)))


def test_every_value_has_a_mapping_of_its_bytes() -> None:
    graph = linear_layer()
    planned = plan(graph)
    for name, value in graph.values.items():
        assert planned.mappings[name].bytes_by_tile.total == value.type.num_bytes


def test_small_values_take_turns_on_the_tiles() -> None:
    planned = plan(
        small(
            "weight %a : f32[64]",
            "weight %b : f32[64]",
            "input %x : f32[100,64]",
            f"add %y : %y : f32[100,64] = (%x, %a) {BODY}",
            f"add %z : %z : f32[100,64] = (%y, %b) {BODY}",
        )
    )
    # 256 bytes take two tiles, so the second begins on the third one.
    assert planned.mappings["a"].layout.is_linear
    assert planned.mappings["b"].bytes_by_tile.runs[:2] == ((2, 0), (2, 128))


def test_views_of_views_lie_as_their_source() -> None:
    planned = plan(
        small(
            "weight %w : f32[6,4]",
            f"reshape %r : %r : f32[24] shares %w = (%w) {BODY}",
            f"slice %s : %s : f32[4] shares %r = (%r) {BODY}",
            f"neg %n : %n : f32[4] = (%s) {BODY}",
        )
    )
    assert planned.mappings["w"] == planned.mappings["r"]
    assert planned.mappings["s"].bytes_by_tile.total == 16


def test_a_view_nobody_reads_is_planned_all_the_same() -> None:
    view = f"reshape %r : %r : f32[24] shares %w = (%w) {BODY}"
    planned = plan(small("weight %w : f32[6,4]", view))
    assert planned.plans["r"].outputs == (planned.mappings["w"],)


def test_in_place_results_lie_where_their_memory_is() -> None:
    planned = plan(linear_layer())
    assert planned.mappings["bu"] == planned.mappings["b"]


def test_identical_layers_are_planned_once() -> None:
    lines = ["input %x0 : f32[512,512]"]
    for index in range(20):
        result = f"%x{index + 1}"
        lines += [
            f"weight %w{index} : f32[512,512]",
            f"matmul {result} : {result} : f32[512,512] = (%x{index}, %w{index}) "
            + BODY,
        ]
    planner = Planner(bow())
    plan_ops(small(*lines), planner)
    # The first layer's input is not laid out yet, the others' are: three at most.
    assert planner.num_plans <= 3
    assert planner.num_hits >= 17


def test_homes_are_the_chips_that_write_or_first_read() -> None:
    planned = plan(pipeline())
    assert planned.chips["w0"] == 0
    assert planned.chips["w1"] == 1
    assert planned.chips["c0"] == 1


def test_reading_another_chip_is_refused() -> None:
    graph = sharded()
    ops = [op if op.name != "d" else op.with_place(0, 0) for op in graph.ops]
    with pytest.raises(PlanError, match=r"reads %t, which lies on chip 1.*chip_copy"):
        plan(graph.with_ops(ops))


def test_progress_ends_with_everything_done() -> None:
    seen: list[tuple[str, int, int]] = []
    graph = linear_layer()
    plan_ops(graph, Planner(bow()), lambda *call: seen.append(call))
    assert seen[0] == ("plan", 0, 5)
    assert seen[-1] == ("plan", 5, 5)


def test_generic_ops_are_counted() -> None:
    planner = Planner(bow())
    op = '{"framework_op": "aten.lgamma"}'
    graph = small(
        "input %x : f32[64]",
        f"generic %y : %y : f32[64] = (%x) {op} {BODY}",
        f"generic %z : %z : f32[64] = (%y) {op} {BODY}",
    )
    plan_ops(graph, planner)
    assert planner.generic_ops == {"aten.lgamma": 2}


def test_errors_name_the_op() -> None:
    graph = small(
        "input %x : f32[0,4]",
        "weight %w : f32[4,4]",
        f'matmul %y : %y : f32[0,4] = (%x, %w) {BODY} at "net.py:7"',
    )
    with pytest.raises(PlanError, match=r"^net.py:7: "):
        plan(graph)
