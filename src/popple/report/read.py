"""Open and read report files, Popple's own and genuine ones of the vendor's tools.

In: a report directory or a `.pop` file. Out: a `Report`, whose parts are read
when they are first asked for and kept. A file that is missing, damaged or of an
unknown format is a `ReportError` that says what to do.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from popple.errors import ReportError
from popple.report import sidecars
from popple.report.contents import ReportContents
from popple.report.parts.extras import DebugContext, Framework
from popple.report.schema import COMPILATION_TABLES, REPORT_FILE
from popple.report.tables import compute, execution, extras, memory, settings
from popple.report.tables import programs as program_tables
from popple.report.tables import target as target_tables
from popple.report.tables import variables as variable_tables
from popple.report.tables.rows import RecordTable, has_table
from popple.report.tables.vectors import COMPILED, EXECUTED, VectorReader

_MAJOR = 3
_REMEDY = "Write it again with `popple run --report DIR`."

T = TypeVar("T")


def open_report(path: str | os.PathLike[str]) -> Report:
    """Open a report directory or a report file; close it, or use it in a `with`."""
    return Report(_find_file(Path(path)))


class Part(Generic[T]):
    """A part of a report that is read on first use."""

    def __init__(self, load: Callable[[Report], T]) -> None:
        self._load = load

    def __set_name__(self, owner: type[Report], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, report: None, owner: type[Report]) -> Part[T]: ...
    @overload
    def __get__(self, report: Report, owner: type[Report]) -> T: ...
    def __get__(self, report: Report | None, owner: type[Report]) -> T | Part[T]:
        if report is None:
            return self
        value = report.load(self._name, self._load)
        # An attribute of the instance comes before a descriptor without a setter.
        report.__dict__[self._name] = value
        return value


def _part(select: Callable[[sqlite3.Connection], T]) -> Part[T]:
    return Part(lambda report: select(report.connection))


def _only(table: RecordTable[T]) -> Part[T]:
    def load(report: Report) -> T:
        # More or fewer rows than one is damage: `load` turns the ValueError into that.
        (record,) = table.select(report.connection)
        return record

    return Part(load)


def _text(table: str, column: str) -> Part[str]:
    return _part(lambda connection: settings.select_text(connection, table, column))


class Report:
    """An open report; its parts have the names and types of `ReportContents`.

    The one difference: `memory_by_tile` holds arrays instead of run vectors.
    """

    target = _part(target_tables.select_target)
    graph_info = _only(target_tables.GRAPH_INFO)
    format_version = _only(settings.FORMAT_VERSION)
    producer_version = _only(settings.PRODUCER_VERSION)
    compilation_id = _text("compilation_info", "compilation_id")
    created = _text("date_time", "string")
    optimizations = _part(settings.OPTIMIZATIONS.select)
    compile_events = _part(settings.COMPILE_EVENTS.select)
    instrumentation = _only(settings.INSTRUMENTATION)
    compilation_parameters = _part(settings.COMPILATION_PARAMETERS.select)
    target_parameters = _part(settings.TARGET_PARAMETERS.select)
    execution_parameters = _part(settings.EXECUTION_PARAMETERS.select)

    vertex_types = _part(compute.select_vertex_types)
    compute_sets = Part(
        lambda report: compute.select_compute_sets(
            report.connection, report.compiled_vectors, report.executed_vectors
        )
    )
    programs = Part(
        lambda report: program_tables.select_programs(
            report.connection, report.compiled_vectors
        )
    )
    control_programs = _part(program_tables.CONTROL_PROGRAMS.select)
    function_programs = _part(program_tables.FUNCTION_PROGRAMS.select)
    exchange_regions = _part(program_tables.EXCHANGE_REGIONS.select)

    memory_by_tile = Part(
        lambda report: memory.select_memory_by_tile(
            report.connection, report.target.num_tiles
        )
    )
    categories = _part(memory.CATEGORIES.select)
    memory_by_category = _part(memory.MEMORY_BY_CATEGORY.select)
    liveness_tiles = _part(memory.select_liveness_tiles)
    liveness_steps = _part(program_tables.select_liveness_steps)
    liveness_deltas = _part(memory.select_liveness_deltas)
    liveness_classes = _part(variable_tables.select_liveness_classes)
    variables = Part(
        lambda report: variable_tables.select_variables(
            report.connection, report.target.tiles_per_chip
        )
    )
    lowered_variables = _part(variable_tables.select_lowered_variables)
    interferences = _part(variable_tables.INTERFERENCES.select)
    allocation_orders = _part(variable_tables.ALLOCATION_ORDERS.select)

    steps = Part(
        lambda report: execution.select_steps(
            report.connection, report.executed_vectors
        )
    )
    runs = _part(execution.RUNS.select)
    cycle_totals = _part(execution.select_cycle_totals)
    program_trace = _part(execution.select_program_trace)
    markers = _part(execution.MARKERS.select)
    blocks = _part(execution.BLOCKS.select)

    operations = _part(extras.OPERATIONS.select)
    timeline = _part(extras.TIMELINE.select)
    chip_times = _part(extras.CHIP_TIME.select)
    memory_roles = _part(extras.MEMORY_ROLES.select)
    info = _part(extras.select_info)
    generic_ops = _part(extras.select_generic_ops)
    graph_text = _text("popple_graph", "text")
    case_text = _text("popple_case", "text")

    compiled_vectors = _part(lambda connection: VectorReader(connection, COMPILED))
    executed_vectors = _part(lambda connection: VectorReader(connection, EXECUTED))

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = _connect(path)
        try:
            self._verify()
        # The caller gets no object to close if the constructor raises.
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        state = "" if self._connection else ", closed"
        return f"Report({str(self.path)!r}{state})"

    @property
    def connection(self) -> sqlite3.Connection:
        """The read-only database, for queries of tables no part covers."""
        if self._connection is None:
            raise ReportError("the report is closed.", where=str(self.path))
        return self._connection

    @cached_property
    def debug_contexts(self) -> tuple[DebugContext, ...]:
        """Names debug ids refer to, from the file beside the report."""
        return sidecars.read_debug(self.path.with_name(sidecars.DEBUG_FILE))

    @cached_property
    def framework(self) -> Framework | None:
        """The framework of the program, from the file beside the report."""
        return sidecars.read_framework(self.path.with_name(sidecars.FRAMEWORK_FILE))

    def contents(self) -> ReportContents:
        """All parts as one value, as they would be written."""
        parts: dict[str, Any] = {
            part.name: getattr(self, part.name) for part in fields(ReportContents)
        }
        # `ReportContents` compares with `==`, which run vectors have and arrays do not.
        parts["memory_by_tile"] = self.memory_by_tile.as_runs()
        return ReportContents(**parts)

    def load(self, name: str, read: Callable[[Report], T]) -> T:
        """Read something, and call what does not decode corrupt."""
        try:
            return read(self)
        except (sqlite3.DatabaseError, LookupError, ValueError) as error:
            raise _corrupt(self.path, f"{name}: {error}") from error
        except ReportError as error:
            # A decoder does not know which file its bytes came from.
            if error.where:
                raise
            raise _corrupt(self.path, f"{name}: {error.what}") from error

    def close(self) -> None:
        """Let go of the file; parts already read stay."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Report:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _verify(self) -> None:
        # Size first: a cut file may still have its table of tables, which lies at the
        # front.
        self.load("size", _verify_size)
        self.load("tables", _verify_tables)
        # Minor versions add columns and tables, which readers by column name do not
        # notice.
        version = self.format_version
        if version.major != _MAJOR:
            raise ReportError(
                f"the format is {version.major}.{version.minor}, Popple reads "
                f"{_MAJOR}.x.",
                where=str(self.path),
                remedy=_REMEDY,
            )


def _find_file(path: Path) -> Path:
    # Users know the directory they gave; other tools name the file in it.
    file = path / REPORT_FILE if path.is_dir() else path
    if file.is_file():
        return file
    what = f"no {REPORT_FILE} in it" if path.is_dir() else "no such file or directory"
    remedy = "Name the directory given to `popple run --report DIR`, or make one."
    raise ReportError(f"{what}.", where=str(path), remedy=remedy)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        # Read only: SQLite would otherwise create a file that is missing.
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.OperationalError as error:
        raise ReportError(f"{error}.", where=str(path), remedy=_REMEDY) from error


def _verify_size(report: Report) -> None:
    """A cut file is noticed at once, not when a lost page is first needed."""
    (page_bytes,) = report.connection.execute("PRAGMA page_size").fetchone()
    (num_pages,) = report.connection.execute("PRAGMA page_count").fetchone()
    held = report.path.stat().st_size
    if held < page_bytes * num_pages:
        raise ValueError(f"{held} of {page_bytes * num_pages} bytes are there")


def _verify_tables(report: Report) -> None:
    for table in COMPILATION_TABLES:
        # Tables of executed programs may be missing: a program may not have run.
        if not has_table(report.connection, table):
            raise ValueError(f"there is no table {table}")


def _corrupt(path: Path, detail: str) -> ReportError:
    return ReportError(
        f"the file is corrupt ({detail}).", where=str(path), remedy=_REMEDY
    )
