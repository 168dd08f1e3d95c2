"""What a program does on its chips, written by itself for others to read.

In: the beginning and end of each run. Out: an `Activity` in a file of 64 bytes, which
gc-monitor and others read from outside. A run boundary costs about two microseconds:
programs with short runs must not become slower by being watched.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from popple.device.state import open_file

# How fast the shown utilisation follows what runs: a look every two seconds, as
# `watch -n 2 gc-monitor` takes, should see the last seconds and not the last run.
LOAD_SECONDS = 2.0

# Two looks at a file differ only if a run began or ended between them.
_MAX_LOOKS = 8
# The fields of `Activity` in their order.
_FORMAT = struct.Struct("<QQ6d")


@dataclass(frozen=True)
class Activity:
    """The counters of one lease, as of the run boundary at `changed`.

    Times are seconds since the epoch. `load` is the share of time spent running over
    the last `LOAD_SECONDS`, `heat` the same over the chip's thermal time constant;
    both fade exponentially.
    """

    runs: int = 0
    running: int = 0
    attached: float = 0.0
    changed: float = 0.0
    busy_seconds: float = 0.0
    load: float = 0.0
    heat: float = 0.0
    heat_seconds: float = 1.0

    def at(self, now: float) -> Activity:
        """The same counters at a later time, if nothing begins or ends until then."""
        passed = max(0.0, now - self.changed)
        level = 1.0 if self.running else 0.0
        return replace(
            self,
            changed=max(now, self.changed),
            busy_seconds=self.busy_seconds + passed * level,
            load=_fade(self.load, level, passed / LOAD_SECONDS),
            heat=_fade(self.heat, level, passed / self.heat_seconds),
        )

    def utilisation_since_attached(self, now: float) -> float:
        """The share of time spent running since the chips were attached, 0 to 1."""
        lived = now - self.attached
        return min(1.0, self.at(now).busy_seconds / lived) if lived > 0 else 0.0


def _fade(value: float, level: float, time_constants: float) -> float:
    return level + (value - level) * math.exp(-time_constants)


def read_activity(path: Path) -> Activity:
    """What the file of a lease says; nothing has run if it is missing or short."""
    try:
        return Activity(*_FORMAT.unpack(_read_settled(path)))
    except (OSError, struct.error):
        return Activity()


def _read_settled(path: Path) -> bytes:
    """The content of a file that two looks agree about: a run may begin meanwhile."""
    found = path.read_bytes()
    for _ in range(_MAX_LOOKS):
        before, found = found, path.read_bytes()
        if before == found:
            break
    return found[: _FORMAT.size]


class ActivityMeter:
    """Keeps the counters of a lease in its file, for as long as the lease is held."""

    def __init__(
        self,
        path: Path,
        mode: int | None,
        heat_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        # Several threads may run programs on one lease.
        self._lock = threading.Lock()
        self._store, close = _open_store(
            open_file(path, mode), is_ours=mode is not None
        )
        # A lease that nobody refers to any more is released, and its counters with it.
        self._end = weakref.finalize(self, close)
        self._attached = self._changed = clock()
        self._heat_seconds = heat_seconds
        self._runs = self._running = 0
        self._busy = self._load = self._heat = 0.0
        self._write()

    @contextmanager
    def running(self) -> Generator[None, None, None]:
        """A program runs inside the block; blocks may be nested or side by side."""
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def close(self) -> None:
        """Stop writing; the lease has ended."""
        with self._lock:
            self._end()

    def _change(self, step: int) -> None:
        """As `Activity.at`, but without making records: this is the cost of a run."""
        with self._lock:
            now = max(self._changed, self._clock())
            passed = now - self._changed
            level = 1.0 if self._running else 0.0
            self._busy += passed * level
            self._load = _fade(self._load, level, passed / LOAD_SECONDS)
            self._heat = _fade(self._heat, level, passed / self._heat_seconds)
            self._changed = now
            self._running += step
            self._runs += step > 0
            self._write()

    def _write(self) -> None:
        # A lease may be released by another thread while a program still runs.
        if not self._end.alive:
            return
        content = _FORMAT.pack(
            self._runs,
            self._running,
            self._attached,
            self._changed,
            self._busy,
            self._load,
            self._heat,
            self._heat_seconds,
        )
        self._store(content)


def _open_store(
    descriptor: int, *, is_ours: bool
) -> tuple[Callable[[bytes], None], Callable[[], None]]:
    """A function that puts counters into a file, and one that closes it."""
    if not is_ours:
        # Another user of a shared pod could shorten the file; touching a memory map
        # would then kill this process, while a write makes the file long again.
        return partial(_write_over, descriptor), partial(os.close, descriptor)
    os.truncate(descriptor, _FORMAT.size)
    memory = mmap.mmap(descriptor, _FORMAT.size)
    os.close(descriptor)
    return partial(memory.__setitem__, slice(0, _FORMAT.size)), memory.close


def _write_over(descriptor: int, content: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, content)
