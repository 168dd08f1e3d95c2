"""Views of views: one step where radices align, the same map in every case."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import assume, example, given
from hypothesis import strategies as st

from popple.plan.layout import Step, View, permuted, sliced
from popple.plan.layout.compose import append_view
from tests.plan.layout.chains import Link, Slice, chains, detours, indices_of

SIZE = 120


def fold(chain: Iterable[Link]) -> tuple[Step, ...]:
    steps: tuple[Step, ...] = ()
    for link in chain:
        steps = append_view(steps, link.view())
    return steps


def map_of(steps: tuple[Step, ...], size: int) -> list[int]:
    """The indices that steps give, from the last one down to the source."""
    last = steps[-1] if steps else None
    indices = list(range(last.num_elements if isinstance(last, View) else size))
    for step in reversed(steps):
        assert isinstance(step, View)
        indices = [step.index_of(index) for index in indices]
    return indices


@given(chains(SIZE))
def test_folding_keeps_the_map(chain: tuple[Link, ...]) -> None:
    assert map_of(fold(chain), SIZE) == indices_of(chain, SIZE).tolist()


@given(chains(SIZE), chains(SIZE))
def test_views_are_equal_if_their_maps_are(
    one: tuple[Link, ...], other: tuple[Link, ...]
) -> None:
    steps = fold(one), fold(other)
    maps = [indices_of(chain, SIZE).tolist() for chain in (one, other)]
    if steps[0] == steps[1]:
        assert maps[0] == maps[1]
    elif min(map(len, steps)) <= 1:
        # One of them folded, and then a map has one form only.
        assert maps[0] != maps[1]


@given(chains(SIZE), st.data())
def test_detours_do_not_show(chain: tuple[Link, ...], data: st.DataObject) -> None:
    steps = fold(chain)
    assume(len(steps) <= 1)
    assert fold(data.draw(detours(chain))) == steps


@given(st.integers(0, 12), st.integers(0, 12))
@example(3, 4)
def test_large_views_fold_by_arithmetic(before: int, after: int) -> None:
    # Too many elements to look at each: the middle of 40 of 64 columns, in two steps
    # and through a transposition, is 40 columns in one.
    whole = Slice((4096, 64), 1, 12, 40)
    first, second = whole.by(before, after)
    turned = permuted(first.result, (1, 0))
    steps = append_view((first.view(),), turned)
    rows = sliced((first.size, 4096), (second.start, 0), (40, 4096))
    steps = append_view(steps, rows)
    assert append_view(steps, permuted((40, 4096), (1, 0))) == (whole.view(),)


def test_radices_that_do_not_align_stay_two_steps() -> None:
    # 4 of 10 columns, then 6 of 8 neighbours: the sixth is in the next row.
    columns = sliced((6, 10), (0, 0), (6, 4))
    steps = append_view((columns,), sliced((3, 8), (0, 0), (3, 6)))
    assert len(steps) == 2
    assert map_of(steps, 60)[:6] == [0, 1, 2, 3, 10, 11]


def test_a_slice_may_come_before_or_after_an_unaligned_reshape() -> None:
    columns = sliced((6, 10), (0, 0), (6, 4))
    late = append_view((columns,), sliced((24,), (4,), (6,)))
    rows = append_view((columns,), sliced((6, 4), (1, 0), (3, 4)))
    assert append_view(rows, sliced((12,), (0,), (6,))) == late


def test_what_comes_off_later_may_align_again() -> None:
    columns = sliced((6, 10), (0, 0), (6, 4))
    steps = append_view((columns,), sliced((3, 8), (0, 0), (3, 6)))
    steps = append_view(steps, sliced((3, 6), (0, 0), (3, 4)))
    # Every second row, its first 4 columns.
    assert steps == (View(60, (3, 4), (20, 1), 0),)


def test_an_unknown_place_stays_unknown() -> None:
    part = sliced((8, 32), None, (3, 32))
    (step,) = append_view((part,), sliced((3, 32), (0, 4), (3, 8)))
    assert step == View(256, (3, 8), (32, 1), None)


def test_nothing_of_a_view_is_nothing() -> None:
    (step,) = append_view(
        (sliced((8, 32), (2, 0), (3, 8)),), sliced((3, 8), (0, 0), (0, 8))
    )
    assert isinstance(step, View)
    assert step.num_elements == 0
