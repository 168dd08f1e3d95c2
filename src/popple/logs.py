"""Log lines of Poplar, PopLibs and PopART, as their environment variables ask.

    2024-04-03T08:27:01.166470Z PL:POPLIN    208191.208191 W: text

Time in UTC, library and module, process and thread, level, text. `get_logger` gives the
logger of a module; `configure` sets levels and destinations from the variables

    POPLAR_LOG_LEVEL, POPLIBS_LOG_LEVEL, POPART_LOG_LEVEL   level of a library
    POPLAR_ENGINE_LOG_LEVEL, POPLIBS_POPLIN_LOG_LEVEL, ...  level of one module
    POPLAR_LOG_DEST, POPLIBS_LOG_DEST, POPART_LOG_DEST      stdout, stderr or a file
    POPART_LOG_CONFIG                                       JSON: level by module

Everything is OFF until a variable says otherwise, and a line that is not shown costs
one comparison: ask `isEnabledFor` before computing what a line says.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from popple.errors import UsageError, suggest

TRACE = 5
OFF = logging.CRITICAL + 10

LEVELS: Mapping[str, int] = {
    "OFF": OFF,
    "ERR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}
"""Levels by the names that the variables use, the quietest first."""
# PopART has CRITICAL too; scripts hand on the names of Python's logging.
_OTHER_NAMES = {
    "CRITICAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARNING": logging.WARNING,
}

_STDERR = "stderr"
_STREAMS = ("stdout", _STDERR)
_LETTERS = {TRACE: "T"}
_ROOT = "popple"


@dataclass(frozen=True)
class Library:
    """A library whose log lines programs can ask for.

    `prefix` begins its lines and `variable` the names of its variables. Lines of a
    library with `width` have their module padded to it, so that texts are aligned.
    """

    name: str
    prefix: str
    variable: str
    modules: tuple[str, ...]
    width: int = 0

    @property
    def logger(self) -> logging.Logger:
        """The parent of the loggers of all modules."""
        return logging.getLogger(f"{_ROOT}.{self.name}")

    def level_variable(self, module: str) -> str:
        """The variable that sets the level of one module."""
        return f"{self.variable}_{module.upper()}_LOG_LEVEL"


_POPLAR = ("CODELETS", "ENGINE", "GRAPH", "PROFILER", "PROGRAM", "TARGET", "TENSOR")
_POPLIBS = (
    *("POPFLOAT", "POPLIN", "POPNN", "POPOPS"),
    *("POPRAND", "POPSOLVER", "POPSPARSE", "POPUTIL"),
)
# PopART has more; these are the ones that have something to say here.
_POPART = ("session", "ir", "devicex", "transform")

LIBRARIES: Mapping[str, Library] = {
    "poplar": Library("poplar", "PO:", "POPLAR", _POPLAR, width=8),
    "poplibs": Library("poplibs", "PL:", "POPLIBS", _POPLIBS, width=9),
    "popart": Library("popart", "popart:", "POPART", _POPART),
}

# Levels that programs have set themselves (`set_level`), by library.
_CHOSEN: dict[str, int] = {}


def get_logger(library: str, module: str) -> logging.Logger:
    """The logger of one module of a library; silent until `configure` is called."""
    if module not in LIBRARIES[library].modules:
        raise ValueError(f"{library} has no module {module!r}.")
    return logging.getLogger(f"{_ROOT}.{library}.{module.lower()}")


def configure(environ: Mapping[str, str]) -> None:
    """Set levels and destinations of all libraries as the variables say now."""
    for library in LIBRARIES.values():
        levels = _levels_of(library, environ)
        level = _read_level(environ, f"{library.variable}_LOG_LEVEL")
        library.logger.setLevel(_CHOSEN.get(library.name, level))
        for module in library.modules:
            # NOTSET: the library's own level holds.
            get_logger(library.name, module).setLevel(levels.get(module, 0))
        destination = environ.get(f"{library.variable}_LOG_DEST") or _STDERR
        if _is_heard(library):
            _send_to(library, destination)


def is_wanted(level: int = logging.WARNING) -> bool:
    """Whether any module of any library shows lines of this level."""
    return any(
        get_logger(library.name, module).isEnabledFor(level)
        for library in LIBRARIES.values()
        for module in library.modules
    )


def set_level(library: str, level: str) -> None:
    """Show lines of this level of a library, whatever the environment says."""
    found = LIBRARIES[library]
    _CHOSEN[library] = LEVELS[level]
    found.logger.setLevel(LEVELS[level])
    if not found.logger.handlers:
        _send_to(found, _STDERR)


def _is_heard(library: Library) -> bool:
    return any(
        get_logger(library.name, module).isEnabledFor(logging.CRITICAL)
        for module in library.modules
    )


def _levels_of(library: Library, environ: Mapping[str, str]) -> dict[str, int]:
    """Levels of single modules; a variable of one module beats a file for all."""
    levels = _read_config(library, environ)
    for module in library.modules:
        name = library.level_variable(module)
        if environ.get(name):
            levels[module] = _read_level(environ, name)
    return levels


def _read_level(environ: Mapping[str, str], variable: str) -> int:
    text = environ.get(variable) or "OFF"
    return _parse_level(text, variable)


def _parse_level(text: str, where: str) -> int:
    level = {**_OTHER_NAMES, **LEVELS}.get(text.upper())
    if level is None:
        remedy = suggest(text.upper(), LEVELS)
        raise UsageError(
            f"{text!r} is not a level of logging.", where=where, remedy=remedy
        )
    return level


def _read_config(library: Library, environ: Mapping[str, str]) -> dict[str, int]:
    """Levels by module from the JSON that the variable names or holds."""
    variable = f"{library.variable}_LOG_CONFIG"
    text = environ.get(variable) if library.name == "popart" else None
    if not text:
        return {}
    try:
        # Documented as the name of a file; the JSON itself cannot be one.
        given: Any = json.loads(
            text if text.lstrip().startswith("{") else Path(text).read_text("utf-8")
        )
        pairs = {str(name): str(level) for name, level in given.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(
            f"cannot be read: {error}.",
            where=variable,
            remedy='Name a file that holds JSON like {"session": "TRACE"}.',
        ) from error
    default = pairs.pop("all", None)
    named = {} if default is None else dict.fromkeys(library.modules, default)
    # PopART has modules for which nothing is logged here: their levels are accepted.
    levels = {**named, **pairs}
    return {name: _parse_level(level, variable) for name, level in levels.items()}


class _Formatter(logging.Formatter):
    """Renders the line shown in the module's docstring."""

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library

    def format(self, record: logging.LogRecord) -> str:
        created = datetime.fromtimestamp(record.created, timezone.utc)
        module = record.name.rpartition(".")[2]
        if self._library.width:
            module = module.upper().ljust(self._library.width)
        letter = _LETTERS.get(record.levelno, record.levelname[0])
        # A handler formats in the thread that logs.
        place = f"{record.process}.{threading.get_native_id()}"
        return (
            f"{created:%Y-%m-%dT%H:%M:%S.%f}Z {self._library.prefix}{module} {place} "
            f"{letter}: {record.getMessage()}"
        )


class _StreamHandler(logging.Handler):
    """Writes to the `sys.stderr` or `sys.stdout` of the moment.

    Programs and test runners exchange these; a kept stream would write past them.
    """

    def __init__(self, stream: str) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        stream = getattr(sys, self._stream)
        if stream is None or stream.closed:
            return
        stream.write(self.format(record) + "\n")
        stream.flush()


def _send_to(library: Library, destination: str) -> None:
    """Let lines of a library go to a stream or a file, and nowhere else."""
    logger = library.logger
    name = f"{library.name} to {destination}"
    if any(handler.name == name for handler in logger.handlers):
        return
    handler = _make_handler(library, destination)
    handler.name = name
    handler.setFormatter(_Formatter(library))
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    logger.addHandler(handler)


def _make_handler(library: Library, destination: str) -> logging.Handler:
    if destination in _STREAMS:
        return _StreamHandler(destination)
    try:
        # Appended to: two libraries, or two processes, may share a file.
        return logging.FileHandler(destination, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"The log {destination} cannot be written: {error.strerror}.",
            where=f"{library.variable}_LOG_DEST",
            remedy="Give stdout, stderr or a file that you may write to.",
        ) from error


for _library in LIBRARIES.values():
    # Not passed on: a program's own logging does not show what it did not ask for.
    _library.logger.setLevel(OFF)
    _library.logger.propagate = False
