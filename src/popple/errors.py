"""Every error Popple raises, as one tree.

    PoppleError
    |- TargetError       a chip or system description is unknown or malformed
    |- GraphError        a Graph breaks a rule of `graph.verify` or does not parse
    |- CaptureError      a framework program cannot be turned into a Graph
    |- PlacementError    blocks, stages or chips do not fit together
    |- PlanError         an op cannot be planned on the target
    |- ProgramError      a Program breaks a rule of `program.verify`
    |- OutOfMemoryError  a program does not fit into the memory of its chips
    |- ReportError       a report is missing, corrupt or of an unknown format
    |- ArithmeticTrap    an operator overflowed or made a NaN, and that was to stop it
    |- DeviceError       a device does not exist or cannot be held
    |   `- DeviceBusyError   someone else holds it
    |- DamagedFileError  a file of ours is not as it was written
    `- UsageError        a command line or an option makes no sense

A message says what is wrong, `where` says where (the user's line or the full
name), and `remedy` says what to do about it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable


class PoppleError(Exception):
    """Base of all errors: what is wrong, where, and what to do."""

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(self._render())

    def _render(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" {self.remedy}" if self.remedy else ""
        return f"{place}{self.what}{advice}"


class TargetError(PoppleError):
    """A chip or system description is unknown or malformed."""


class GraphError(PoppleError):
    """A Graph breaks a rule of `graph.verify` or does not parse."""


class CaptureError(PoppleError):
    """A framework program cannot be turned into a Graph."""


class PlacementError(PoppleError):
    """Blocks, stages or chips do not fit together."""


class PlanError(PoppleError):
    """An op cannot be planned on the target."""


class ProgramError(PoppleError):
    """A Program breaks a rule of `program.verify`."""


class OutOfMemoryError(PoppleError):
    """A program does not fit, and was to be refused; `profile_path` is its report."""

    def __init__(self, what: str, profile_path: str = "") -> None:
        self.profile_path = profile_path
        super().__init__(what)


class ReportError(PoppleError):
    """A report is missing, corrupt or of an unknown format."""


class ArithmeticTrap(PoppleError):
    """An operator overflowed or made a NaN, and that was to stop the run."""


class DeviceError(PoppleError):
    """A device does not exist or cannot be held."""


class DeviceBusyError(DeviceError):
    """Someone else holds the device: it may be free later."""


class DamagedFileError(PoppleError):
    """A file of ours is not as it was written: cut short, changed, or another's."""

    def __init__(
        self, path: str | os.PathLike[str], why: str, *, remedy: str = ""
    ) -> None:
        self.path = os.fspath(path)
        self.why = why
        super().__init__(f"the file is damaged: {why}.", where=self.path, remedy=remedy)


class UsageError(PoppleError):
    """A command line or an option makes no sense."""


def suggest(name: str, known: Iterable[str]) -> str:
    """A sentence naming the nearest known names, or all of them if none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"Did you mean {' or '.join(repr(n) for n in near)}?"
    return f"Known names: {', '.join(names)}."
