"""Options for kinds of ops, as notes on the ops they speak of."""

from __future__ import annotations

from dataclasses import replace

from popple.graph import NO_NOTES, Graph, Notes, Phase, parse_graph
from popple.place import ApplyOpOptions, run_passes
from tests.place.graphs import TWO_CHIPS, named

SMALL, LARGE = Notes(memory_proportion=0.1), Notes(memory_proportion=0.9)


def applied(options: ApplyOpOptions) -> Graph:
    return run_passes(parse_graph(TWO_CHIPS), [options])


def test_a_family_has_notes_and_others_have_none() -> None:
    graph = applied(ApplyOpOptions(by_family={"matmul": SMALL}))
    assert named(graph, "h").notes == named(graph, "db").notes == SMALL
    assert named(graph, "dy").notes == NO_NOTES


def test_a_stage_beats_the_family_and_a_kind_beats_both() -> None:
    by_stage = {(Phase.FORWARD, 1): {"matmul": LARGE}}
    graph = applied(ApplyOpOptions({"matmul": SMALL}, by_stage))
    assert [named(graph, n).notes for n in ("h", "y", "db")] == [SMALL, LARGE, SMALL]
    kinds = {"matmul": Notes(memory_proportion=0.5)}
    graph = applied(ApplyOpOptions({"matmul": SMALL}, by_stage, kinds))
    assert named(graph, "y").notes == kinds["matmul"]


def test_what_is_noted_on_an_op_beats_all() -> None:
    graph = parse_graph(TWO_CHIPS)
    ops = [replace(op, notes=LARGE) if op.name == "h" else op for op in graph.ops]
    said = ApplyOpOptions({"matmul": SMALL.updated(Notes(block_size=8))})
    found = named(said.apply(graph.with_ops(ops)), "h").notes
    assert found == LARGE.updated(Notes(block_size=8))


def test_a_silent_configuration_changes_nothing() -> None:
    graph = parse_graph(TWO_CHIPS)
    assert ApplyOpOptions().apply(graph) == graph
