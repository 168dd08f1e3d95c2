"""Schedule: less is live at once, and every op still finds what it needs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from popple.graph import Graph, find_dependencies, parse_graph
from popple.place import AccumulateGradients, Pipeline, Schedule, Shard, run_passes
from tests.place.graphs import ONE_CHIP, SGD, TWO_CHIPS
from tests.place.test_properties import networks


def scheduled(*lines: str) -> list[str]:
    """Names of the ops after scheduling a forward graph of one chip."""
    ops = [f"{line} forward chip=0 stage=0" for line in lines]
    given = ["input %x : f32[8,8]", "weight %w : f32[8,1]", "state %s : f32[8,1]"]
    text = "\n".join(['graph "g" {', *given, *ops, "output %y", "}"])
    return [op.name for op in run_passes(parse_graph(text), [Schedule()]).ops]


WIDE = "relu %b : %b : f32[8,8] = (%x)"
NARROW = "matmul %c : %c : f32[8,1] = (%b, %w)"
LAST = "add %y : %y : f32[8,1] = (%a, %c)"


def test_makers_wait_for_their_first_reader() -> None:
    """The peak is at b: x, b and, unless it waits, a."""
    early = "fill %a : %a : f32[8,1] = ()"
    assert scheduled(early, WIDE, NARROW, LAST) == ["b", "c", "a", "y"]


def test_an_order_that_is_not_better_is_kept() -> None:
    """The peak is at b, before a is made wherever it stands."""
    late = "fill %a : %a : f32[8,1] = ()"
    other = "relu %d : %d : f32[8,1] = (%c)"
    order = scheduled(WIDE, NARROW, late, other, LAST)
    assert order == ["b", "c", "a", "d", "y"]


def test_readers_run_before_memory_is_overwritten() -> None:
    """The maker of a reads s: it waits no longer than until s is overwritten."""
    early = "relu %a : %a : f32[8,1] = (%s)"
    write = "relu %t : %t : f32[8,1] shares %s = (%s)"
    order = scheduled(early, WIDE, write, NARROW, LAST)
    assert order[0] == "b"
    assert order.index("a") < order.index("t")


def test_gradients_are_accumulated_when_they_exist() -> None:
    """Not both gradients live at once, but one after the other."""
    graph = run_passes(parse_graph(ONE_CHIP), [SGD, AccumulateGradients(4)])
    names = [op.name for op in Schedule().apply(graph).ops]
    assert names[1:5] == ["da", "da.accumulate", "db", "db.accumulate"]


def test_copies_of_pipelines_stay_behind_their_stage() -> None:
    graph = run_passes(parse_graph(TWO_CHIPS), [SGD, Pipeline(), Schedule()])
    staged = [op for op in graph.ops if op.phase.value != "update"]
    keys = [(op.stage, op.kind == "chip_copy") for op in staged]
    assert keys == sorted(keys)


@given(networks(), st.booleans(), st.booleans())
def test_random_graphs_keep_their_needs(
    graph: Graph, recompute: bool, is_pipeline: bool
) -> None:
    last = Pipeline(recompute) if is_pipeline else Shard()
    before = run_passes(graph, [AccumulateGradients(4), last])
    after = run_passes(before, [Schedule()])
    assert sorted(op.name for op in after.ops) == sorted(op.name for op in before.ops)
    places = {op.name: place for place, op in enumerate(after.ops)}
    for op, needs in zip(
        before.ops, find_dependencies(before, before.ops), strict=True
    ):
        assert all(places[before.ops[n].name] < places[op.name] for n in needs)
