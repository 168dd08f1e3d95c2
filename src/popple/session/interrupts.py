"""Interrupts and threads: Ctrl-C waits for a safe point, compilations for each other.

A KeyboardInterrupt may come between any two bytecodes. Inside PyTorch's tracing that
is fatal: raised while C++ enters or leaves a mode, it ends the process. Between two
writes of an update it leaves weights of two steps. So work that must not be cut runs
`uninterrupted`: SIGINT is noted, and raised at the next `safe_point`, at the latest
when the work is done. Who presses Ctrl-C three times is obeyed at once.

Tracing changes what the whole process shares (hooks, functions of libraries), so one
thread compiles at a time: `compiling_alone`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar

__all__ = ["compiling_alone", "safe_point", "sleep_safely", "uninterrupted"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_PATIENCE = 3  # signals, until the user is taken at their word
_POLL_SECONDS = 0.1
_COMPILATION = threading.RLock()


class _Deferral:
    """Stands in for the program's handler of SIGINT."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler
        self.num_pending = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.num_pending += 1
        if self.num_pending >= _PATIENCE:
            self.deliver()

    def deliver(self) -> None:
        """Let the program's handler have what was noted; it mostly raises."""
        if self.num_pending:
            self.num_pending = 0
            self.handler(signal.SIGINT, None)


@contextmanager
def _deferred() -> Generator[None, None, None]:
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    # Only the main thread gets signals; a handler that is not Python's raises nothing.
    if not is_main or not callable(handler) or isinstance(handler, _Deferral):
        yield
        return
    deferral = _Deferral(handler)
    signal.signal(signal.SIGINT, deferral)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        deferral.deliver()


def uninterrupted(
    function: Callable[Parameters, Result],
) -> Callable[Parameters, Result]:
    """Decorator: SIGINT is raised at safe points of this function, or when it ends."""

    @wraps(function)
    def shielded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with _deferred():
            return function(*args, **kwargs)

    return shielded


def safe_point() -> None:
    """Raise a noted interrupt here: nothing is half done."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if isinstance(handler, _Deferral):
            handler.deliver()


def sleep_safely(seconds: float) -> None:
    """Wait where nothing is half done: an interrupt that was noted ends it."""
    safe_point()
    time.sleep(seconds)


@contextmanager
def compiling_alone() -> Generator[None, None, None]:
    """No other thread compiles meanwhile; a compilation inside another may."""
    while not _COMPILATION.acquire(timeout=_POLL_SECONDS):
        safe_point()
    try:
        yield
    finally:
        _COMPILATION.release()
