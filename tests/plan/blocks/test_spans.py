"""Distinct indices of a stretch of neighbours, against counting them."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from popple.plan.blocks.spans import num_distinct, operand_kept


def test_six_neighbours_of_four_by_three() -> None:
    assert num_distinct((4, 3), (True, False), 6) == 2
    assert num_distinct((4, 3), (False, True), 6) == 3
    assert num_distinct((4, 3), (False, False), 6) == 1
    assert num_distinct((4, 3), (True, True), 0) == 0


@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=4),
    st.data(),
)
def test_agrees_with_counting_from_the_first_element(
    dims: list[tuple[int, bool]], data: st.DataObject
) -> None:
    shape, kept = tuple(d for d, _ in dims), tuple(k for _, k in dims)
    indices = list(itertools.product(*map(range, shape)))
    span = data.draw(st.integers(1, len(indices)))
    met = {
        tuple(i for i, k in zip(index, kept, strict=True) if k)
        for index in indices[:span]
    }
    # Never less; equal where the stretch fills whole blocks or stays in one.
    assert num_distinct(shape, kept, span) >= len(met)
    assert num_distinct(shape, kept, len(indices)) == len(set(_project(indices, kept)))


def _project(
    indices: list[tuple[int, ...]], kept: tuple[bool, ...]
) -> list[tuple[int, ...]]:
    return [tuple(i for i, k in zip(x, kept, strict=True) if k) for x in indices]


def test_operands_vary_along_their_own_dimensions() -> None:
    assert operand_kept((5,), (4, 5)) == (False, True)
    assert operand_kept((4, 1), (4, 5)) == (True, False)
    assert operand_kept((), (4, 5)) == (False, False)
