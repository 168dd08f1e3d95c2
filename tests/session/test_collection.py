"""The collector rests while a program is compiled, and works afterwards."""

from __future__ import annotations

import gc
import weakref

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
    assert not any(type(each) is Knot for each in gc.get_objects())


def test_cycles_of_earlier_programs_are_looked_for_when_enough_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = collection._Old()
    monkeypatch.setattr(collection, "_old", old)
    with collection_paused():
        knot = weakref.ref(Knot())
    with collection_paused():
        assert knot() is not None
    old.after_full_pass = 10
    monkeypatch.setattr(collection, "_MOST_WAITING", 1_000)
    with collection_paused():
        assert knot() is None
    assert old.after_full_pass > 10


def test_a_full_pass_between_programs_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = collection._Old()
    monkeypatch.setattr(collection, "_old", old)
    monkeypatch.setattr(collection, "_MOST_WAITING", 0)
    for _ in range(2):
        with collection_paused():
            pass
    old.after_full_pass = 10
    gc.collect()
    passes = gc.get_stats()[2]["collections"]
    with collection_paused():
        pass
    assert gc.get_stats()[2]["collections"] == passes


def test_what_a_program_has_frozen_stays_frozen() -> None:
    frozen: list[object] = []
    gc.freeze()
    try:
        with collection_paused():
            pass
        # Only what the collector may visit is listed. A count would do if nothing that
        # was frozen ever ended.
        assert not any(each is frozen for each in gc.get_objects())
    finally:
        gc.unfreeze()
