from __future__ import annotations

from popple.sim.effect import NEVER_USED, Effect, NextUse, leaf_effect

# Three variables: bit 0 is read, bit 1 written, bit 2 left alone.
READ, WRITE, OTHER = 0b001, 0b010, 0b100
EVERY = READ | WRITE | OTHER
STEP = leaf_effect(EVERY, READ, WRITE)


def test_a_leaf_reads_and_writes() -> None:
    assert Effect(OTHER, READ, WRITE, WRITE) == STEP


def test_a_leaf_that_does_both_reads_first() -> None:
    assert leaf_effect(1, 1, 1) == Effect(0, 1, 0, 1)


def test_an_end_is_neither() -> None:
    assert leaf_effect(1, 0, 0, ended=1) == Effect(0, 0, 0, 0)


def test_the_first_use_and_the_last_write_count() -> None:
    swapped = leaf_effect(EVERY, WRITE, READ)
    assert STEP.then(swapped) == Effect(OTHER, READ, WRITE, READ)


def test_either_way_may_happen() -> None:
    nothing = Effect(EVERY, 0, 0, 0)
    assert STEP.either(nothing) == Effect(EVERY, READ, WRITE, WRITE)


def test_uses_pass_what_a_step_leaves_alone() -> None:
    after = NextUse(read=WRITE | OTHER, write=READ)
    assert STEP.next_before(after) == NextUse(read=READ | OTHER, write=WRITE)
    assert STEP.written_after(READ | OTHER) == WRITE | OTHER


def test_contents_live_if_read_next_or_written_in_parts() -> None:
    assert NextUse(read=READ, write=WRITE | OTHER).live(WRITE) == READ | WRITE
    assert NEVER_USED.live(EVERY) == 0
