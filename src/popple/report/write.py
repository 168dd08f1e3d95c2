"""Write a report directory: `profile.pop`, `debug.cbor`, `framework.json`.

In: a `ReportContents`. Out: three files, each of which appears whole or not at
all. `profile.pop` is replaced last, so a writer that dies leaves the old report.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from popple.errors import ReportError
from popple.files import replace_file, write_atomically
from popple.report.contents import ReportContents
from popple.report.schema import REPORT_FILE, create_tables
from popple.report.sidecars import (
    DEBUG_FILE,
    FRAMEWORK_FILE,
    encode_debug,
    encode_framework,
)
from popple.report.tables import (
    compute,
    execution,
    extras,
    memory,
    programs,
    settings,
    target,
    variables,
)
from popple.report.tables.vectors import COMPILED, EXECUTED, VectorWriter


def write_report(contents: ReportContents, directory: str | os.PathLike[str]) -> Path:
    """Write the files of a report and return the path of `profile.pop`."""
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Files beside the report first: whoever finds a new `profile.pop` finds them
        # too.
        write_atomically(folder / DEBUG_FILE, encode_debug(contents.debug_contexts))
        write_atomically(folder / FRAMEWORK_FILE, encode_framework(contents.framework))
        with replace_file(folder / REPORT_FILE) as path:
            _write_database(contents, path)
    except (OSError, sqlite3.Error) as error:
        raise ReportError(
            f"the report cannot be written: {error}.",
            where=str(folder),
            remedy="Choose a directory you may write to, on a disk with room.",
        ) from error
    return folder / REPORT_FILE


def _write_database(contents: ReportContents, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        # The file is thrown away if anything fails, so nothing needs a journal.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        # One transaction: SQLite would otherwise commit after every statement.
        with connection:
            create_tables(connection)
            for insert in _SECTIONS:
                insert(connection, contents)


def _insert_settings(connection: sqlite3.Connection, contents: ReportContents) -> None:
    settings.FORMAT_VERSION.insert(connection, [contents.format_version])
    settings.PRODUCER_VERSION.insert(connection, [contents.producer_version])
    settings.COMPILE_EVENTS.insert(connection, contents.compile_events)
    settings.OPTIMIZATIONS.insert(connection, contents.optimizations)
    settings.INSTRUMENTATION.insert(connection, [contents.instrumentation])
    for table, parameters in (
        (settings.COMPILATION_PARAMETERS, contents.compilation_parameters),
        (settings.TARGET_PARAMETERS, contents.target_parameters),
        (settings.EXECUTION_PARAMETERS, contents.execution_parameters),
    ):
        table.insert(connection, parameters)
    settings.insert_texts(connection, "date_time", "string", [contents.created])
    # The id belongs to the compilation and to the execution; here both are in one file.
    for table in ("compilation_info", "execution_info"):
        ids = [contents.compilation_id]
        settings.insert_texts(connection, table, "compilation_id", ids)


def _insert_program(connection: sqlite3.Connection, contents: ReportContents) -> None:
    """Parts whose cycle vectors share the two vector tables."""
    compiled, executed = VectorWriter(), VectorWriter()
    index = programs.index_payloads(contents.programs)
    tiles_per_chip = contents.target.tiles_per_chip
    compute.insert_vertex_types(connection, contents.vertex_types)
    compute.insert_compute_sets(connection, contents.compute_sets, compiled, executed)
    programs.insert_programs(
        connection, contents.programs, index, compiled, tiles_per_chip
    )
    programs.CONTROL_PROGRAMS.insert(connection, contents.control_programs)
    programs.FUNCTION_PROGRAMS.insert(connection, contents.function_programs)
    programs.insert_exchange_regions(connection, contents.exchange_regions)
    execution.insert_steps(
        connection, contents.steps, contents.programs, index, executed
    )
    # Last: until here the writers collect the vectors of all tables above.
    compiled.insert(connection, COMPILED)
    executed.insert(connection, EXECUTED)


def _insert_memory(connection: sqlite3.Connection, contents: ReportContents) -> None:
    memory.insert_memory_by_tile(connection, contents.memory_by_tile)
    memory.CATEGORIES.insert(connection, contents.categories)
    memory.MEMORY_BY_CATEGORY.insert(connection, contents.memory_by_category)
    memory.insert_liveness_tiles(connection, contents.liveness_tiles)
    memory.insert_liveness_deltas(connection, contents.liveness_deltas)
    programs.insert_liveness_steps(connection, contents.liveness_steps)
    variables.insert_liveness_classes(connection, contents.liveness_classes)
    variables.insert_variables(connection, contents.variables)
    variables.insert_lowered_variables(connection, contents.lowered_variables)
    variables.INTERFERENCES.insert(connection, contents.interferences)
    variables.ALLOCATION_ORDERS.insert(connection, contents.allocation_orders)


def _insert_execution(connection: sqlite3.Connection, contents: ReportContents) -> None:
    execution.RUNS.insert(connection, contents.runs)
    execution.insert_cycle_totals(connection, contents.cycle_totals)
    execution.insert_program_trace(connection, contents.program_trace)
    execution.MARKERS.insert(connection, contents.markers)
    execution.BLOCKS.insert(connection, contents.blocks)


def _insert_extras(connection: sqlite3.Connection, contents: ReportContents) -> None:
    extras.OPERATIONS.insert(connection, contents.operations)
    extras.TIMELINE.insert(connection, contents.timeline)
    extras.CHIP_TIME.insert(connection, contents.chip_times)
    extras.MEMORY_ROLES.insert(connection, contents.memory_roles)
    extras.insert_info(connection, contents.info)
    extras.insert_generic_ops(connection, contents.generic_ops)
    texts = {"popple_graph": contents.graph_text, "popple_case": contents.case_text}
    for table, text in texts.items():
        settings.insert_texts(connection, table, "text", [text] if text else [])


def _insert_target(connection: sqlite3.Connection, contents: ReportContents) -> None:
    target.insert_target(connection, contents.target)
    target.GRAPH_INFO.insert(connection, [contents.graph_info])


_SECTIONS: tuple[Callable[[sqlite3.Connection, ReportContents], None], ...] = (
    _insert_settings,
    _insert_target,
    _insert_program,
    _insert_memory,
    _insert_execution,
    _insert_extras,
)
