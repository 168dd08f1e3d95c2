"""Dead ops go, with the values that only they know."""

from __future__ import annotations

from popple.graph import Graph, parse_graph, verify
from popple.place import RemoveDead


def graph_of(*lines: str) -> Graph:
    """Ops, one a line, over the state %s, the input %x and a constant; %y leaves."""
    ops = [f"{line} forward chip=0 stage=0" for line in lines]
    given = ["state %s : f32[4]", "input %x : f32[4]", "constant %c : f32[4]"]
    return parse_graph("\n".join(['graph "g" {', *given, *ops, "output %y", "}"]))


def live(graph: Graph, *kept: str) -> list[str]:
    result = RemoveDead(frozenset(kept)).apply(graph)
    verify(result)
    return [op.name for op in result.ops]


def test_what_nobody_reads_goes_with_all_that_leads_to_it() -> None:
    graph = graph_of(
        "neg %a : %a : f32[4] = (%x)",
        "exp %b : %b : f32[4] = (%a)",
        "relu %y : %y : f32[4] = (%x)",
    )
    assert live(graph) == ["y"]
    assert live(graph, "a") == ["a", "y"]


def test_what_writes_to_a_state_stays() -> None:
    graph = graph_of(
        "add %t : %t : f32[4] shares %s = (%s, %x)",
        "relu %y : %y : f32[4] = (%x)",
    )
    assert live(graph) == ["t", "y"]


def test_what_writes_to_memory_that_is_read_later_stays() -> None:
    graph = graph_of(
        "neg %a : %a : f32[4] = (%x)",
        "add %b : %b : f32[4] shares %a = (%a, %x)",
        "reshape %v : %v : f32[2,2] shares %a = (%a)",
        "relu %y : %y : f32[2,2] = (%v)",
    )
    assert live(graph) == ["a", "b", "v", "y"]


def test_an_op_without_results_stays() -> None:
    graph = graph_of("stream_out %o = (%x)", "relu %y : %y : f32[4] = (%x)")
    assert live(graph) == ["o", "y"]


def test_constants_go_and_what_a_program_is_given_stays() -> None:
    graph = graph_of("fill %y : %y : f32[4] = ()")
    assert list(RemoveDead().apply(graph).values) == ["s", "x", "y"]


def test_a_view_of_a_dropped_view_shares_with_the_owner() -> None:
    graph = graph_of(
        "neg %a : %a : f32[4] = (%x)",
        "reshape %v : %v : f32[2,2] shares %a = (%a)",
        "relu %y : %y : f32[4] shares %v = (%a)",
    )
    # %y overwrites what %a owns; the view between them is gone.
    result = RemoveDead().apply(graph)
    assert [op.name for op in result.ops] == ["a", "y"]
    assert result.values["y"].storage == "a"
