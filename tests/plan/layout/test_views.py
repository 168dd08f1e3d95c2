"""Views: normal forms, and the index maps that NumPy has for the same shapes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from popple.plan.layout import Dims, View, inverse, permuted, repeated, sliced
from tests.plan.layout.chains import Link, indices_of, links

SIZE = 120


def map_of(view: View) -> list[int]:
    return [view.index_of(index) for index in range(view.num_elements)]


@given(links(SIZE))
def test_a_view_maps_indices_as_numpy_does(link: Link) -> None:
    assert map_of(link.view()) == indices_of([link], SIZE).tolist()


def test_dimensions_of_one_and_neighbours_that_stay_are_not_told() -> None:
    # Dimensions 2 and 3 keep their order: 8 and 3 are one digit of 24.
    moved = permuted((5, 1, 8, 3), (2, 1, 3, 0))
    assert moved == permuted((5, 24), (1, 0))
    assert moved.digits == ((24, 1), (5, 24))


def test_whole_rows_are_one_run() -> None:
    rows = sliced((8, 32), (2, 0), (3, 32))
    assert (rows.digits, rows.offset) == (((96, 1),), 64)


@given(st.permutations(range(4)))
def test_the_inverse_of_a_permutation(order: list[int]) -> None:
    view = permuted((2, 3, 4, 5), tuple(order))
    back = map_of(inverse(view))
    assert [map_of(view)[index] for index in back] == list(range(120))


def test_a_view_without_gaps_is_dense_in_any_order() -> None:
    rows = sliced((8, 32), (2, 0), (3, 32))
    assert rows.is_dense
    assert permuted((3, 32), (1, 0)).is_dense
    assert not sliced((8, 32), (2, 0), (3, 31)).is_dense
    assert repeated((4, 1), (4, 5)).is_dense


def test_what_is_repeated_counts_once() -> None:
    # One row of 32 shown nine times.
    view = repeated((1, 32), (9, 32))
    assert view.digits == ((9, 0), (32, 1))
    assert (view.num_elements, view.num_distinct, view.is_whole) == (288, 32, True)


@given(st.sampled_from([((3,), (2, 3)), ((4, 1), (4, 5)), ((1, 2, 1), (3, 2, 4))]))
def test_repetition_maps_indices_as_numpy_does(shapes: tuple[Dims, Dims]) -> None:
    before, after = shapes
    values = np.arange(np.prod(before)).reshape(before)
    expected = np.broadcast_to(values, after).ravel()
    assert map_of(repeated(before, after)) == expected.tolist()


def test_a_view_of_everything_in_place_is_the_identity() -> None:
    assert sliced((4, 6), (0, 0), (4, 6)).is_identity
    assert not sliced((4, 6), (0, 0), (2, 6)).is_identity
    assert not sliced((4, 6), None, (2, 6)).is_identity
    assert permuted((1, 1), (1, 0)).is_identity
    assert sliced((0, 6), (0, 0), (0, 6)).is_identity
