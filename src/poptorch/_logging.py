"""The logger of the PopTorch interface.

One line per message on stderr:

    [12:30:59.123] [poptorch::python] [warning] text

The level comes from POPTORCH_LOG_LEVEL (default WARN) and `setLogLevel`.
"""

from __future__ import annotations

import logging
import os
import sys
from datetime import datetime

__all__ = ["TRACE", "logger", "setLogLevel"]

TRACE = 5
"""Level below DEBUG, for `logger.log(TRACE, ...)`."""

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


class _StderrHandler(logging.Handler):
    """Writes to the `sys.stderr` of the moment, not that of the import.

    Programs and test runners exchange `sys.stderr`; a kept stream would write
    past them, or into a closed file.
    """

    def emit(self, record: logging.LogRecord) -> None:
        stream = sys.stderr
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


def _start() -> None:
    handler = _StderrHandler()
    handler.setFormatter(_Formatter())
    logger.addHandler(handler)
    setLogLevel(os.environ.get("POPTORCH_LOG_LEVEL", "WARN"))


_start()
