from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from popple.program import Category, TileVector, Variable
from popple.sim import Interval
from popple.sim.sweep import find_peak
from tests.sim.machines import tiles

NUM_STEPS, NUM_TILES = 6, 4


def test_the_peak_of_each_tile_is_at_its_own_step() -> None:
    first = Variable("a", tiles(10, 5, 0))
    second = Variable("b", tiles(0, 7, 7), Category.MESSAGE)
    peak = find_peak([first, second], {"a": [(0, 1)], "b": [(2, 3)]}, 3)
    assert peak.bytes_by_tile == tiles(10, 7, 7)
    assert peak.step_by_tile == tiles(0, 2, 2)
    assert peak.by_category == {
        Category.VARIABLE: tiles(10, 0, 0),
        Category.MESSAGE: tiles(0, 7, 7),
    }


def test_what_ends_makes_room_for_what_begins() -> None:
    variables = [Variable(name, tiles(8)) for name in "ab"]
    apart = find_peak(variables, {"a": [(0, 1)], "b": [(2, 3)]}, 1)
    together = find_peak(variables, {"a": [(0, 2)], "b": [(2, 3)]}, 1)
    assert (apart.bytes_by_tile, together.bytes_by_tile) == (tiles(8), tiles(16))


def test_no_variables_take_no_bytes() -> None:
    peak = find_peak([], {}, 5)
    assert peak.bytes_by_tile == TileVector.zeros(5)
    assert peak.by_category == {}


@st.composite
def variables(draw: st.DrawFn) -> tuple[list[Variable], dict[str, list[Interval]]]:
    found: list[Variable] = []
    lives: dict[str, list[Interval]] = {}
    for name in "abc"[: draw(st.integers(0, 3))]:
        values = draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
        category = draw(st.sampled_from([Category.VARIABLE, Category.MESSAGE]))
        found.append(Variable(name, tiles(*values), category))
        bounds = draw(st.lists(st.integers(0, NUM_STEPS - 1), max_size=4, unique=True))
        pairs = zip(sorted(bounds)[::2], sorted(bounds)[1::2], strict=False)
        lives[name] = list(pairs)
    return found, lives


@given(variables())
def test_sweeping_finds_what_adding_up_every_step_finds(
    case: tuple[list[Variable], dict[str, list[Interval]]],
) -> None:
    found, lives = case
    table = np.zeros((NUM_STEPS, NUM_TILES), dtype=np.int64)
    by_category = defaultdict(lambda: np.zeros_like(table))
    for variable in found:
        for first, last in lives[variable.name]:
            values = variable.bytes_by_tile.to_array()
            table[first : last + 1] += values
            by_category[variable.category][first : last + 1] += values
    peak = find_peak(found, lives, NUM_TILES)
    steps = table.argmax(axis=0)
    assert peak.bytes_by_tile.to_array().tolist() == table.max(axis=0).tolist()
    assert peak.step_by_tile.to_array().tolist() == steps.tolist()
    for category, vector in peak.by_category.items():
        held = by_category[category][steps, np.arange(NUM_TILES)]
        assert vector.to_array().tolist() == held.tolist()
