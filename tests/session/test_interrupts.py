"""Ctrl-C waits for a safe point; compilations wait for each other."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from popple.session.interrupts import compiling_alone, safe_point, uninterrupted


@pytest.fixture(autouse=True)
def _python_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_waits_for_the_end() -> None:
    done = []

    @uninterrupted
    def work() -> None:
        press()
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_or_for_a_safe_point() -> None:
    done = []

    @uninterrupted
    def inner() -> None:
        press()
        done.append("inner")

    @uninterrupted
    def outer() -> None:
        inner()
        done.append("between")
        safe_point()
        done.append("never")

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert done == ["inner", "between"]


def test_three_times_is_an_order() -> None:
    done = []

    @uninterrupted
    def endless() -> None:
        press(2)
        done.append("two")
        press()
        done.append("three")

    with pytest.raises(KeyboardInterrupt):
        endless()
    assert done == ["two"]


def test_handlers_of_the_program_are_asked() -> None:
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))

    @uninterrupted
    def work() -> int:
        press()
        assert seen == []
        return 3

    assert work() == 3
    assert seen == [signal.SIGINT]


def test_ignored_signals_stay_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    @uninterrupted
    def work() -> bool:
        return signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    assert work()


def test_one_thread_compiles_at_a_time() -> None:
    inside: list[int] = []
    most: list[int] = []

    def compile_something() -> None:
        for _ in range(50):
            with compiling_alone(), compiling_alone():
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=compile_something) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 200
