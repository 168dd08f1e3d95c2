"""The logger of the PopTorch interface.

One line per message on stderr:

    [12:30:59.123] [poptorch::python] [warning] text

The level comes from POPTORCH_LOG_LEVEL (default WARN) and `setLogLevel`;
POPTORCH_LOG_DEST sends the lines to stdout or to a file instead. Errors that end the
program are logged too.
"""

from __future__ import annotations

import faulthandler
import io
import logging
import os
import subprocess
import sys
import traceback
from contextlib import suppress
from datetime import datetime
from types import TracebackType

from popple import logs

__all__ = ["TRACE", "logger", "setLogLevel", "setPopartLogLevel"]

TRACE = 5
"""Level below DEBUG, for `logger.log(TRACE, ...)`."""

_FATAL = logging.CRITICAL
_OFF = logging.CRITICAL + 10

_LEVELS = {
    "TRACE": (0, TRACE),
    "DEBUG": (1, logging.DEBUG),
    "INFO": (2, logging.INFO),
    "WARN": (3, logging.WARNING),
    "ERR": (4, logging.ERROR),
    "OFF": (6, _OFF),
}
"""Public name -> (public number, level of Python's logging)."""

_LEVEL_WORDS = {TRACE: "trace", logging.WARNING: "warning"}

logger = logging.getLogger("poptorch::python")


class _Formatter(logging.Formatter):
    """Renders the line shown in the module's docstring."""

    def format(self, record: logging.LogRecord) -> str:
        created = datetime.fromtimestamp(record.created)
        clock = f"{created:%H:%M:%S}.{int(record.msecs):03d}"
        word = _LEVEL_WORDS.get(record.levelno, record.levelname.lower())
        return f"[{clock}] [{record.name}] [{word}] {record.getMessage()}"


class _StreamHandler(logging.Handler):
    """Writes to the `sys.stderr` of the moment, not that of the import.

    Programs and test runners exchange `sys.stderr`; a kept stream would write
    past them, or into a closed file. The same holds for `sys.stdout`.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def emit(self, record: logging.LogRecord) -> None:
        stream = getattr(sys, self._name)
        if stream is None or stream.closed:
            return
        stream.write(self.format(record) + "\n")
        stream.flush()


def setLogLevel(level: str | int) -> None:
    """Show messages of `level` and above.

    `level` is TRACE, DEBUG, INFO, WARN, ERR or OFF, or 0, 1, 2, 3, 4, 6.
    """
    logger.setLevel(_python_level(level))


def _python_level(level: str | int) -> int:
    if isinstance(level, int):
        by_number = dict(_LEVELS.values())
        if level not in by_number:
            raise ValueError(f"Invalid log level integer {level}. {_valid_levels()}")
        return by_number[level]
    if level not in _LEVELS:
        raise ValueError(f"Unknown log level: {level}. {_valid_levels()}")
    return _LEVELS[level][1]


def _valid_levels() -> str:
    *names, last = sorted(_LEVELS)
    return f"Valid values are {', '.join(names)} and {last}"


def setPopartLogLevel(level: str) -> None:
    """Show lines of the back end: of passes and of the compilation, when modelled."""
    if not isinstance(level, str) or level not in _LEVELS:
        raise ValueError(f"Level must be one of {', '.join(_LEVELS)}")
    logs.set_level("popart", level)


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Log an error that ends the program, with what a failed subprocess wrote."""
    if isinstance(error, KeyboardInterrupt) or not logger.isEnabledFor(_FATAL):
        sys.__excepthook__(kind, error, trace)
        return
    text = "".join(traceback.format_exception(kind, error, trace))
    if isinstance(error, subprocess.CalledProcessError):
        text += _as_text(error.stderr or error.stdout)
    logger.log(_FATAL, "%s: %s\n%s", kind.__name__, error, text)


def _as_text(output: bytes | str | None) -> str:
    return (
        output.decode(errors="replace") if isinstance(output, bytes) else output or ""
    )


def _make_handler(destination: str) -> logging.Handler:
    if destination in ("stderr", "stdout"):
        return _StreamHandler(destination)
    return logging.FileHandler(destination, delay=True)


def _start() -> None:
    handler = _make_handler(os.environ.get("POPTORCH_LOG_DEST", "stderr"))
    handler.setFormatter(_Formatter())
    logger.addHandler(handler)
    setLogLevel(os.environ.get("POPTORCH_LOG_LEVEL", "WARN"))
    sys.excepthook = _log_uncaught
    with suppress(io.UnsupportedOperation, RuntimeError):  # no descriptor to write to
        faulthandler.enable()


_start()
