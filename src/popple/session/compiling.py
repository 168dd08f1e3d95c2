"""What compiling a program asks of its model: log lines, whether it fits, a report.

A program that only runs is never modelled. It is if the environment wants log lines
(`popple.logs`), if the engine option debug.allowOutOfMemory is false, or if a report is
wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from popple import logs
from popple.errors import OutOfMemoryError, PoppleError
from popple.session.cost import (
    ModelledCost,
    ProgramReport,
    find_report,
    is_graph_profile_only,
)
from popple.session.settings import Settings
from popple.session.watching import note_program

_ENGINE_LOG = logs.get_logger("poplar", "ENGINE")
_ALLOW = "debug.allowOutOfMemory"
# Programs look for this sentence of Poplar's, and for the path behind it.
_DOES_NOT_FIT = "Out of memory: Cannot fit all variable data onto one or more tiles."


def compile_program(
    name: str,
    cost: ModelledCost,
    engine: Mapping[str, str],
    settings: Settings,
    own_name: Callable[[], str] | None = None,
    progress: Callable[[str], None] = lambda part: None,
    is_ipu_model: bool = False,
    is_loaded: bool = False,
) -> ProgramReport | None:
    """Log, check and report a program as asked; its report, if one is wanted.

    `own_name` is as that of `find_report`; what is logged was set before, by
    `follow_log_variables`. OutOfMemoryError if the program does not fit and must; the
    IPU Model never stops for want of memory. A program that `is_loaded` comes from a
    cache: nothing is compiled, so there is nothing to log, and no profile of a graph.
    """
    is_logged = logs.is_wanted() and not is_loaded
    report = None
    if not (is_loaded and is_graph_profile_only(engine)):
        report = find_report(name, engine, settings, cost.write_report, own_name)
    note_program(name, cost)
    is_refused = settings.is_strict or is_memory_checked(engine)
    is_checked = is_refused and not is_ipu_model
    if is_logged or report is not None or is_checked:
        progress("modelling")
    if is_checked:
        check_memory(cost, report, is_memory_checked(engine))
    if report is not None:
        report.begin()
    elif is_logged:
        _log_model(name, cost)
    return report


def is_memory_checked(engine: Mapping[str, str]) -> bool:
    """Whether a program that does not fit is refused; the default is not to."""
    return engine.get(_ALLOW, "true").lower() == "false"


def check_memory(
    cost: ModelledCost, report: ProgramReport | None, is_option: bool = True
) -> None:
    """Refuse a program that does not fit; its report is written, without runs.

    It does so because of the engine option, or because of `popple run --strict`.
    """
    simulation = cost.modelled().simulation
    if simulation.fits:
        return
    path = _save(cost, report.directory) if report is not None else ""
    saved = f" Profile saved to: {path}" if path else ""
    over = simulation.memory.overflow_by_tile
    sizes = _describe(over.total, over.num_nonzero, over.maximum, over.peak_tile)
    way_out = f"set {_ALLOW} to true." if is_option else "run it without --strict."
    text = f"{_DOES_NOT_FIT}{saved}\n{sizes} {way_out}"
    _ENGINE_LOG.error(text)
    raise OutOfMemoryError(text, path)


def log_run(name: str) -> None:
    """Log that a program is run."""
    _ENGINE_LOG.info("Running %s", name)


def _describe(missing: int, num_tiles: int, most: int, tile: int) -> str:
    """How much too large a program is, and what can be done; the last way is open."""
    return (
        f"{missing:,} bytes are missing on {num_tiles:,} tiles, {most:,} of them on "
        f"tile {tile}. Spread the program over more IPUs, make its batch smaller, or"
    )


def _save(cost: ModelledCost, directory: Path) -> str:
    path = cost.write_report(directory, num_runs=0)
    # As a program names its directory: ./report/profile.pop.
    return str(path) if path.is_absolute() else f"./{path}"


def _log_model(name: str, cost: ModelledCost) -> None:
    """Model a program for the sake of its log lines; it runs whatever comes of it."""
    try:
        cost.modelled()
    except PoppleError as error:
        _ENGINE_LOG.error("%s cannot be modelled: %s", name, error)
