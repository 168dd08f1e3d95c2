"""From an optimiser's op back to the gradient, past sums that passes will write."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("tensorflow")

from popple.capture.tensorflow.gradients import (
    GradientSearch,
    settle_phases,
    without_replaced,
)
from popple.graph import Graph, Phase, parse_graph, verify

HEAD = """graph "g" {
  input %x : f32[4]
  state %sum : f32[4]
  tanh %raw : %raw : f32[4] = (%x) backward chip=0 stage=0
"""


def graph_of(*lines: str) -> Graph:
    return parse_graph("\n".join([HEAD, *lines, "}"]))


def op(kind: str, name: str, *inputs: str, shares: str = "", at: str = "update") -> str:
    memory = f" shares %{shares}" if shares else ""
    sources = ", ".join(f"%{each}" for each in inputs)
    result = f"%{name} : f32[4]{memory}"
    return f"  {kind} %{name} : {result} = ({sources}) {at} chip=0 stage=0"


def test_clipping_is_looked_through() -> None:
    graph = graph_of(op("mul", "scaled", "raw"), op("clamp", "clipped", "scaled"))
    assert GradientSearch(graph, False, False).find("clipped") == "raw"


def test_what_the_backward_pass_made_is_the_gradient() -> None:
    search = GradientSearch(graph_of(), True, True)
    assert search.find("raw") == "raw"


def test_an_accumulator_is_taken_out_if_passes_write_one() -> None:
    graph = graph_of(
        op("add", "total", "sum", "raw", shares="sum"),
        op("update_slice", "reset", "total", "raw", shares="sum"),
        op("neg", "negated", "total"),
    )
    search = GradientSearch(graph, True, False)
    assert search.find("negated") == "raw"
    left = without_replaced(graph, search)
    assert [each.kind for each in left.ops] == ["tanh", "neg"]
    assert left.ops[-1].inputs == ("raw",)


def test_a_scaled_accumulator_is_one_too() -> None:
    graph = graph_of(op("mul", "scaled", "sum"), op("add", "total", "scaled", "raw"))
    assert GradientSearch(graph, True, False).find("total") == "raw"


def test_an_accumulator_stays_if_no_pass_writes_one() -> None:
    graph = graph_of(op("add", "total", "sum", "raw", shares="sum", at="backward"))
    search = GradientSearch(graph, False, False)
    assert search.find("total") == "total"
    assert without_replaced(graph, search).ops == graph.ops


@pytest.mark.parametrize(("replicated", "expected"), [(True, "raw"), (False, "all")])
def test_sums_over_replicas_are_taken_out_if_passes_write_them(
    replicated: bool, expected: str
) -> None:
    line = (
        '  all_reduce %all : %all : f32[4] = (%raw) {"replicas": 2} backward '
        "chip=0 stage=0"
    )
    assert GradientSearch(graph_of(line), False, replicated).find("all") == expected


def test_what_is_handed_to_the_host_is_what_stands_for_it() -> None:
    # The optimiser puts the sum of gradients into an outfeed; passes write that sum.
    graph = graph_of(
        op("add", "total", "sum", "raw", shares="sum"),
        op("update_slice", "reset", "total", "raw", shares="sum"),
    )
    graph = replace(graph, outputs=("total", "reset", "raw"))
    search = GradientSearch(graph, is_accumulated=True, is_replicated=False)
    search.find("total")
    left = without_replaced(graph, search)
    assert left.outputs == ("raw",)
    assert set(left.outputs) <= {name for each in left.ops for name in each.outputs}


def test_what_the_backward_pass_reads_is_not_part_of_the_update() -> None:
    graph = graph_of(op("neg", "a", "raw"), op("neg", "b", "a", at="backward"))
    settled = settle_phases(graph, [])
    verify(settled)
    assert [each.phase for each in settled.ops] == [Phase.BACKWARD] * 3


def test_gradients_are_made_before_the_update() -> None:
    graph = graph_of(op("neg", "a", "raw"), op("neg", "b", "a"))
    phases = [each.phase for each in settle_phases(graph, ["a"]).ops]
    assert phases == [Phase.BACKWARD, Phase.BACKWARD, Phase.UPDATE]
