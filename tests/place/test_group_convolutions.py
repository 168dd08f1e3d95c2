"""Independent convolutions: found with their gradients, and put in a row."""

from __future__ import annotations

from dataclasses import replace

from popple.graph import Graph, MultiConv, Notes
from popple.place import GroupConvolutions, run_passes
from tests.place.graphs import two_convolutions


def grouped(graph: Graph) -> Graph:
    return run_passes(graph, [GroupConvolutions()])


def test_members_of_a_group_stand_in_a_row() -> None:
    ops = grouped(two_convolutions("block")).ops
    assert [op.name for op in ops] == ["a", "b", "relu", "ga", "gb"]


def test_passes_are_units_of_their_own() -> None:
    ops = grouped(two_convolutions("block")).ops
    units = {op.name: op.notes.side_by_side for op in ops}
    assert units["a"] == units["b"] != units["ga"] == units["gb"]
    assert units["relu"] == ""


def test_what_depends_on_each_other_is_left_alone() -> None:
    graph = two_convolutions("block", chained=True)
    assert grouped(graph) is graph


def test_a_group_of_one_and_no_group_are_left_alone() -> None:
    assert grouped(graph := two_convolutions("")) is graph
    marked = two_convolutions("block")
    alone = [op for op in marked.ops if op.name in ("a", "relu", "ga")]
    graph = replace(marked.with_ops(alone), outputs=("middle", "g0"))
    assert grouped(graph) is graph


def test_gradients_have_the_wishes_of_their_group() -> None:
    graph = two_convolutions("block")
    wish = MultiConv("block", reserved_tiles=700, cycle_back_off=0.0)
    noted = [
        replace(op, notes=Notes(multi_conv=wish)) if op.kind == "conv" else op
        for op in graph.ops
    ]
    ops = {op.name: op for op in grouped(graph.with_ops(noted)).ops}
    assert ops["ga"].notes.multi_conv == ops["gb"].notes.multi_conv == wish
