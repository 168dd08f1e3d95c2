"""BoundMemory: plans on a chip use the share of memory that the chip was given."""

from __future__ import annotations

from popple.graph import parse_graph
from popple.place import BoundMemory, run_passes
from tests.place.graphs import TWO_CHIPS, ops_of


def test_ops_have_the_bound_of_their_chip() -> None:
    graph = run_passes(parse_graph(TWO_CHIPS), [BoundMemory({0: 0.3, 1: 0.2})])
    found = {(op.chip, op.notes.memory_proportion) for op in ops_of(graph, "matmul")}
    assert found == {(0, 0.3), (1, 0.2)}
    assert {op.notes.memory_proportion for op in ops_of(graph, "permute")} == {None}


def test_a_chip_without_a_bound_keeps_the_planners() -> None:
    graph = run_passes(parse_graph(TWO_CHIPS), [BoundMemory({1: 0.2})])
    found = {(op.chip, op.notes.memory_proportion) for op in ops_of(graph, "matmul")}
    assert found == {(0, None), (1, 0.2)}


def test_what_an_op_says_itself_goes_before() -> None:
    text = TWO_CHIPS.replace(
        "(%x, %a) forward", '(%x, %a) notes {"memory_proportion": 0.5} forward'
    )
    graph = run_passes(parse_graph(text), [BoundMemory({0: 0.3})])
    assert ops_of(graph, "matmul")[0].notes.memory_proportion == 0.5
