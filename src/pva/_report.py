"""`openReport` and the report it opens."""

from __future__ import annotations

import os
import weakref
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from popple import report as rp
from popple.report.sidecars import read_debug
from pva._compilation import CompilationReport
from pva._compute import ComputeSetIndex
from pva._execution import ExecutionReport
from pva._programs import ProgramIndex
from pva._variables import VariableIndex

__all__ = [
    "InstrumentationSettings",
    "PoplarVersion",
    "ProfileReportVersion",
    "Report",
    "openReport",
]


class PoplarVersion(NamedTuple):
    """The software that compiled the program."""

    string: str
    packageHash: str
    major: int
    minor: int
    point: int


class ProfileReportVersion(NamedTuple):
    """The format of the file."""

    major: int
    minor: int
    point: int
    isUnstableFormat: bool


class ComputeLevel(Enum):
    """What compute cycles were measured for."""

    Off = 0
    Vertex = 1
    Tile = 2
    Ipu = 3
    Device = 4
    Unknown = 5


class ExternalExchangeLevel(Enum):
    """What cycles of exchanges between chips were measured for."""

    Off = 0
    Tile = 1
    Unknown = 2


class InstrumentationSettings:
    """What was measured."""

    ComputeInstrumentationLevel = ComputeLevel
    ExternalExchangeInstrumentationLevel = ExternalExchangeLevel

    def __init__(self, record: rp.Instrumentation) -> None:
        known = ComputeLevel.__members__
        level = (record.compute_level or "Unknown").capitalize()
        self.compute = known.get(level, ComputeLevel.Unknown)
        if not record.has_compute:
            self.compute = ComputeLevel.Off
        tile, off = ExternalExchangeLevel.Tile, ExternalExchangeLevel.Off
        self.externalExchange = tile if record.has_external_exchange else off


class Report:
    """An open report; the file is let go of with the last reference to a part."""

    def __init__(self, records: rp.Report, debug_file: Path | None = None) -> None:
        self.records = records
        self._debug_file = debug_file
        self._compute = ComputeSetIndex(records)
        self._variables = VariableIndex(records)
        self._programs = ProgramIndex(records, self._compute, self._variables)
        # With the last part of it that is in use, not with the report as a whole.
        weakref.finalize(records, records.connection.close)

    def __repr__(self) -> str:
        target = self.compilation.target
        size = f"{target.numIPUs} IPUs, {target.numTiles} tiles"
        return f"Report({self.records.path.name!r}, {size})"

    @cached_property
    def compilation(self) -> CompilationReport:
        """What was compiled."""
        return CompilationReport(
            self.records, self._programs, self._compute, self._variables
        )

    @cached_property
    def execution(self) -> ExecutionReport:
        """What happened when it ran."""
        return ExecutionReport(self.records, self._programs)

    @cached_property
    def poplarVersion(self) -> PoplarVersion:
        """The software that compiled the program."""
        version = self.records.producer_version
        return PoplarVersion(
            version.text,
            version.package_hash,
            version.major,
            version.minor,
            version.point,
        )

    @cached_property
    def version(self) -> ProfileReportVersion:
        """The format of the file."""
        version = self.records.format_version
        return ProfileReportVersion(
            version.major, version.minor, version.point, version.is_unstable
        )

    @cached_property
    def instrumentationSettings(self) -> InstrumentationSettings:
        """What was measured."""
        return InstrumentationSettings(self.records.instrumentation)

    @cached_property
    def debug_contexts(self) -> dict[int, rp.DebugContext]:
        """The names debug ids refer to, by id."""
        file = self._debug_file
        found = self.records.debug_contexts if file is None else read_debug(file)
        return {context.id: context for context in found}


def openReport(
    profileFilename: str | os.PathLike[str],
    debugInfoFilename: str | os.PathLike[str] | None = None,
) -> Report:
    """Open a `profile.pop`, Popple's own or one from a real machine, for reading."""
    debug_file = None if debugInfoFilename is None else Path(debugInfoFilename)
    return Report(rp.open_report(profileFilename), debug_file)
