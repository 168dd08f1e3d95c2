"""Exchange patterns and memory patterns: what a fault changes is found, no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from popple.device.faults import DeviceOptions, Fault, FaultInjector
from popple.program import Exchange
from popple.target import Chip, Target, load_system
from popple.tools.gc.memory import find_bad_tiles
from popple.tools.gc.patterns import (
    Pattern,
    make_all_to_all,
    make_broadcast,
    make_gather,
    make_permutations,
    program_of,
    run_pattern,
)
from popple.tools.gc.traffic import move_words

NUM_TILES = 48


def small_chip() -> Chip:
    return replace(load_system("bow").chip, num_tiles=NUM_TILES)


def small_target() -> Target:
    return Target(replace(load_system("bow"), chip=small_chip()))


def all_patterns() -> list[Pattern]:
    return [
        *make_permutations(NUM_TILES, 8),
        make_all_to_all(NUM_TILES),
        make_broadcast(NUM_TILES, 5, 8),
        make_gather(NUM_TILES, 7, 2),
    ]


@pytest.mark.parametrize("pattern", all_patterns(), ids=lambda p: p.name)
def test_a_pattern_is_moved_whole(pattern: Pattern) -> None:
    outcome = run_pattern(pattern, small_target(), [])
    assert outcome.bad_tiles == ()
    assert outcome.cycles > 0


@pytest.mark.parametrize("pattern", all_patterns()[:5], ids=lambda p: p.name)
def test_the_tile_of_a_fault_is_found(pattern: Pattern) -> None:
    outcome = run_pattern(pattern, small_target(), [Fault("exchange", tile=11)])
    assert outcome.bad_tiles == (11,)


@pytest.mark.parametrize("pattern", all_patterns()[:4], ids=lambda p: p.name)
def test_permutations_reach_every_tile_once(pattern: Pattern) -> None:
    for ends in (pattern.sources, pattern.destinations):
        assert np.array_equal(np.sort(ends), np.arange(NUM_TILES))


def test_the_program_has_the_bytes_of_the_messages() -> None:
    step = program_of(make_all_to_all(NUM_TILES)).main
    assert isinstance(step, Exchange)
    assert step.sent_by_tile == step.received_by_tile
    assert step.received_by_tile.total == NUM_TILES * NUM_TILES * 4


def test_a_broadcast_is_sent_once() -> None:
    step = program_of(make_broadcast(NUM_TILES, 5, 8)).main
    assert isinstance(step, Exchange)
    assert step.sent_by_tile.total == 32
    assert step.received_by_tile.total == 32 * NUM_TILES


@pytest.mark.parametrize("tile", [0, 31, 32, NUM_TILES - 1])
def test_bad_memory_is_found_on_any_tile(tile: int) -> None:
    options = DeviceOptions((Fault("memory", tile=tile, address=8, bit=7),), 5)
    bad = find_bad_tiles(small_chip(), 0, FaultInjector(options))
    base = small_chip().tile_memory_base_address
    assert [(b.tile, b.address, b.pattern) for b in bad] == [(tile, base + 8, "zeros")]


def test_two_bad_tiles_are_told_apart() -> None:
    faults = tuple(Fault("memory", tile=tile) for tile in (40, 3))
    bad = find_bad_tiles(small_chip(), 0, FaultInjector(DeviceOptions(faults, 5)))
    assert [b.tile for b in bad] == [3, 40]


def test_words_over_a_broken_wire_are_wrong() -> None:
    assert move_words(1 << 16, 1, []) == 0
    assert move_words(1 << 16, 1, [Fault("link")]) == (1 << 14) // 1024
