"""Runs of programs, as the event trace and the reports tell of them.

A device holds one program at a time. Its variables travel there before its first run
and stay, until the host looks at one or changes one, or another program is loaded. In:
programs about to run, and what else sessions touch. Out: events, if they are wanted,
and runs in reports.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from popple.session import read_settings

from .. import _device
from .._device import trace_events
from .cycle_counts import log_cycles
from .program_arguments import Arguments
from .traced_programs import TracedProgram

__all__ = ["running", "touch"]


class _Held:
    """What a device holds."""

    def __init__(self) -> None:
        self.program: TracedProgram | None = None
        self.arguments: Arguments | None = None
        self.is_there = False
        self.values: list[Any] = []

    def has_changed(self) -> bool:
        """Whether the host has changed a variable since the last run."""
        now = self.arguments.values() if self.arguments else []
        pairs = zip(self.values, now, strict=True)
        return any(not np.array_equal(before, after) for before, after in pairs)


class _Devices:
    """What each device holds, by its number."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}

    def forget(self) -> None:
        """Nothing is on any device."""
        self._held.clear()

    def begin(self, program: TracedProgram) -> None:
        """A program is about to run."""
        ordinal = program.settings.ordinal
        held = self._held.setdefault(ordinal, _Held())
        if held.program is not program:
            self._leave(ordinal, held)
            trace_events.record_load(program.name, ordinal)
            held.program, held.arguments = program, program.arguments()
        elif held.is_there and held.has_changed():
            self._leave(ordinal, held)
        if not held.is_there and held.arguments and held.arguments.variables:
            names = held.arguments.downloads()
            trace_events.record_transfer("HOST_TO_DEVICE", names, ordinal)
        held.is_there = True
        trace_events.record_execute(program.name, ordinal)

    def end(self, program: TracedProgram) -> None:
        """A program has run."""
        held = self._held.get(program.settings.ordinal)
        if held is not None and held.arguments is not None:
            held.values = held.arguments.values()

    def touch(self, variables: Iterable[str]) -> None:
        """The host reads or changes variables."""
        names = set(variables)
        for ordinal, held in self._held.items():
            if held.arguments and not names.isdisjoint(held.arguments.variables):
                self._leave(ordinal, held)

    def _leave(self, ordinal: int, held: _Held) -> None:
        """What the program changed comes back to the host."""
        if held.is_there and held.arguments and held.arguments.written:
            names = held.arguments.uploads()
            trace_events.record_transfer("DEVICE_TO_HOST", names, ordinal)
        held.is_there = False


_DEVICES = _Devices()
_device.on_reset(_DEVICES.forget)


@contextlib.contextmanager
def running(*programs: TracedProgram) -> Iterator[None]:
    """These programs run inside."""
    # Comparing variables between runs costs time, so it is done for events only.
    traced = [p for p in programs if trace_events.is_wanted(p.settings.ordinal)]
    for program in programs:
        program.add_run()
        log_cycles(program)
    if read_settings().is_model_only:
        # Everything up to here was capturing; the rest would compute.
        raise SystemExit(0)
    for program in traced:
        _DEVICES.begin(program)
    with contextlib.ExitStack() as busy:
        for ordinal in dict.fromkeys(p.settings.ordinal for p in programs):
            busy.enter_context(_device.running(ordinal))
        yield
    for program in traced:
        _DEVICES.end(program)


def touch(variables: Iterable[str]) -> None:
    """The host reads or changes variables of these names."""
    _DEVICES.touch(variables)
