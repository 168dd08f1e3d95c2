"""Values are laid out as their first reader wishes, else linearly and in turn."""

import pytest

from popple.errors import PlanError
from popple.graph import Graph, parse_graph
from popple.plan import Planner
from popple.plan.layout import Layout, plan_layout
from tests.plan.graphs import linear_layer, pipeline, sharded
from tests.plan.machines import bow

BODY = "forward chip=0 stage=0"


def lay_out(graph: Graph) -> Layout:
    return plan_layout(graph, Planner(bow(graph.execution.num_chips)))


def small(*lines: str) -> Graph:
    return parse_graph("\n".join(['graph "small" {', *lines, "}"]))


def test_a_weight_lies_as_the_matmul_wants_its_transpose() -> None:
    layout = lay_out(linear_layer())
    turned, weight = layout.mappings["wt"], layout.mappings["w"]
    assert turned.layout.startswith("conv")
    assert weight.layout == f"{turned.layout}>permute[96,128:1,0]"


def test_every_value_has_a_mapping_of_its_bytes() -> None:
    graph = linear_layer()
    layout = lay_out(graph)
    for name, value in graph.values.items():
        assert layout.mappings[name].bytes_by_tile.total == value.type.num_bytes


def test_small_values_take_turns_on_the_tiles() -> None:
    layout = lay_out(
        small(
            "weight %a : f32[64]",
            "weight %b : f32[64]",
            "input %x : f32[100,64]",
            f"add %y : %y : f32[100,64] = (%x, %a) {BODY}",
            f"add %z : %z : f32[100,64] = (%y, %b) {BODY}",
        )
    )
    # 256 bytes take two tiles, so the second begins on the third one.
    assert layout.mappings["a"].layout == "linear"
    assert layout.mappings["b"].bytes_by_tile.runs[:2] == ((2, 0), (2, 128))


def test_views_of_views_lie_as_their_source() -> None:
    layout = lay_out(
        small(
            "weight %w : f32[6,4]",
            f"reshape %r : %r : f32[24] shares %w = (%w) {BODY}",
            f"slice %s : %s : f32[4] shares %r = (%r) {BODY}",
            f"neg %n : %n : f32[4] = (%s) {BODY}",
        )
    )
    assert layout.mappings["w"] == layout.mappings["r"]
    assert layout.mappings["s"].bytes_by_tile.total == 16


def test_a_view_nobody_reads_is_planned_all_the_same() -> None:
    view = f"reshape %r : %r : f32[24] shares %w = (%w) {BODY}"
    layout = lay_out(small("weight %w : f32[6,4]", view))
    assert layout.plans["r"].outputs == (layout.mappings["w"],)


def test_in_place_results_lie_where_their_memory_is() -> None:
    layout = lay_out(linear_layer())
    assert layout.mappings["bu"] == layout.mappings["b"]


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
    plan_layout(small(*lines), planner)
    # The first layer's input is not laid out yet, the others' are: three at most.
    assert planner.num_plans <= 3
    assert planner.num_hits >= 17


def test_homes_are_the_chips_that_write_or_first_read() -> None:
    layout = lay_out(pipeline())
    assert layout.chips["w0"] == 0
    assert layout.chips["w1"] == 1
    assert layout.chips["c0"] == 1


def test_reading_another_chip_is_refused() -> None:
    graph = sharded()
    ops = [op if op.name != "d" else op.with_place(0, 0) for op in graph.ops]
    with pytest.raises(PlanError, match=r"reads %t, which lies on chip 1.*chip_copy"):
        lay_out(graph.with_ops(ops))


def test_progress_ends_with_everything_done() -> None:
    seen: list[tuple[str, int, int]] = []
    graph = linear_layer()
    plan_layout(graph, Planner(bow()), lambda *call: seen.append(call))
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
    plan_layout(graph, planner)
    assert planner.generic_ops == {"aten.lgamma": 2}


def test_errors_name_the_op() -> None:
    graph = small(
        "input %x : f32[0,4]",
        "weight %w : f32[4,4]",
        f'matmul %y : %y : f32[0,4] = (%x, %w) {BODY} at "net.py:7"',
    )
    with pytest.raises(PlanError, match=r"^net.py:7: "):
        lay_out(graph)
