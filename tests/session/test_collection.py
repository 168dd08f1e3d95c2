"""The collector rests while a program is compiled, and works afterwards."""

from __future__ import annotations

import gc

import pytest

from popple.session import collection
from popple.session.collection import collection_paused


class Knot:
    """An object that holds itself."""

    def __init__(self) -> None:
        self.me = self


def test_it_is_off_meanwhile_and_what_was_made_is_old_afterwards() -> None:
    with collection_paused():
        assert not gc.isenabled()
        made = [Knot()]
    assert gc.isenabled()
    assert any(each is made for each in gc.get_objects(generation=2))


def test_cycles_of_the_meantime_are_found_later() -> None:
    with collection_paused():
        Knot()
    gc.collect()
    assert not any(isinstance(each, Knot) for each in gc.get_objects())


def test_programs_one_after_the_other_do_not_keep_their_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collection, "_MOST_WAITING", 1_000)
    monkeypatch.setattr(collection, "_old", collection._Old())
    gc.collect()
    before = len(gc.get_objects())
    each = before // 4
    for _ in range(20):
        with collection_paused():
            for _ in range(each):
                Knot()
    assert len(gc.get_objects()) < 3 * before


def test_what_a_program_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        with collection_paused():
            frozen = gc.get_freeze_count()
        assert gc.get_freeze_count() >= frozen > 0
    finally:
        gc.unfreeze()
