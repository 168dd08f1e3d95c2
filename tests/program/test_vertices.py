from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import ProgramError
from popple.program import Codelet, TileVector, Variable, VertexGroup, worker_cycles


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4),
    st.integers(1, 6),
)
def test_vertices_are_dealt_in_turn(
    groups: list[tuple[int, int]], workers: int
) -> None:
    in_order = [cycles for count, cycles in groups for _ in range(count)]
    busiest = max(sum(in_order[first::workers]) for first in range(workers))
    counts, cycles = [c for c, _ in groups], [e for _, e in groups]
    assert worker_cycles(counts, cycles, workers) == busiest


def test_seven_equal_vertices_give_one_worker_two() -> None:
    assert worker_cycles([7], [20], 6) == 40


def test_the_order_decides_which_worker_gets_the_long_one() -> None:
    # Two workers: (5 + 1) and 1 against (1 + 1) and 5.
    assert worker_cycles([1, 2], [5, 1], 2) == 6
    assert worker_cycles([1, 1, 1], [1, 5, 1], 2) == 5


def test_counts_and_cycles_must_span_the_same_tiles() -> None:
    with pytest.raises(ProgramError, match="counted on 2 tiles and timed on 3"):
        VertexGroup(Codelet("c"), TileVector.zeros(2), TileVector.zeros(3))


def test_a_variable_cannot_have_negative_bytes() -> None:
    with pytest.raises(ProgramError, match="variable x has negative bytes"):
        Variable("x", TileVector.constant(2, -4))
