"""The logger: line format, levels, and the stderr of the moment."""

from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import poptorch
from popple import logs
from poptorch._logging import (
    TRACE,
    _log_uncaught,
    _make_handler,
    logger,
    setPopartLogLevel,
)


@pytest.fixture(autouse=True)
def restored_level() -> Iterator[None]:
    level = logger.level
    yield
    logger.setLevel(level)


def test_line_format(capfd: pytest.CaptureFixture[str]) -> None:
    poptorch.setLogLevel("WARN")
    logger.warning("%d of %s", 3, "them")
    line = capfd.readouterr().err
    pattern = r"\[\d\d:\d\d:\d\d\.\d{3}\] \[poptorch::python\] \[warning\] 3 of them\n"
    assert re.fullmatch(pattern, line)


def test_stderr_is_looked_up_when_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    logger.error("late")
    assert "[error] late" in stream.getvalue()


def test_closed_stderr_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    logger.error("nobody hears")


@pytest.mark.parametrize(
    ("name", "number", "level"),
    [
        ("TRACE", 0, TRACE),
        ("DEBUG", 1, logging.DEBUG),
        ("INFO", 2, logging.INFO),
        ("WARN", 3, logging.WARNING),
        ("ERR", 4, logging.ERROR),
    ],
)
def test_levels_by_name_and_number(name: str, number: int, level: int) -> None:
    poptorch.setLogLevel(name)
    assert logger.level == level
    poptorch.setLogLevel("OFF")
    poptorch.setLogLevel(number)
    assert logger.level == level


def test_off_silences_critical(capfd: pytest.CaptureFixture[str]) -> None:
    poptorch.setLogLevel(6)
    logger.critical("silence")
    assert capfd.readouterr().err == ""


def test_trace_is_below_debug(capfd: pytest.CaptureFixture[str]) -> None:
    poptorch.setLogLevel("DEBUG")
    logger.log(TRACE, "hidden")
    poptorch.setLogLevel("TRACE")
    logger.log(TRACE, "shown")
    text = capfd.readouterr().err
    assert "[trace] shown" in text
    assert "hidden" not in text


def test_messages_reach_other_handlers(caplog: pytest.LogCaptureFixture) -> None:
    poptorch.setLogLevel("DEBUG")
    logger.debug("copied")
    assert "copied" in caplog.messages


def test_unknown_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="Invalid log level integer"):
        poptorch.setLogLevel(5)
    valid = "Valid values are DEBUG, ERR, INFO, OFF, TRACE and WARN"
    with pytest.raises(ValueError, match=f"Unknown log level: wibble. {valid}"):
        poptorch.setLogLevel("wibble")


def test_level_from_the_environment() -> None:
    code = "from poptorch._logging import logger; print(logger.level)"
    environment = {**os.environ, "POPTORCH_LOG_LEVEL": "DEBUG"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(logging.DEBUG), done.stderr


def end_with(error: Exception) -> None:
    """What happens when nobody catches it."""
    try:
        raise error
    except type(error):
        _log_uncaught(*sys.exc_info())  # pyright: ignore[reportArgumentType]


def test_errors_that_end_the_program_are_logged(
    capfd: pytest.CaptureFixture[str],
) -> None:
    end_with(ValueError("too bad"))
    written = capfd.readouterr().err
    assert "[poptorch::python] [critical] ValueError: too bad" in written
    assert "Traceback (most recent call last)" in written


def test_they_are_shown_even_if_the_log_is_off(
    capfd: pytest.CaptureFixture[str],
) -> None:
    poptorch.setLogLevel("OFF")
    end_with(ValueError("too bad"))
    assert capfd.readouterr().err.endswith("ValueError: too bad\n")


@pytest.mark.parametrize("output", [b"its last words", "its last words"])
def test_a_failed_subprocess_is_quoted(
    output: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    end_with(subprocess.CalledProcessError(1, "it", stderr=output))
    assert "its last words" in capfd.readouterr().err


def test_importing_takes_over_uncaught_errors() -> None:
    code = "import poptorch, sys; print(sys.excepthook.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "poptorch._logging\n"


def test_the_log_can_go_elsewhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    record = logging.makeLogRecord({"msg": "here"})
    _make_handler("stdout").emit(record)
    assert capfd.readouterr() == ("here\n", "")
    handler = _make_handler(str(tmp_path / "log"))
    handler.emit(record)
    handler.close()
    assert (tmp_path / "log").read_text() == "here\n"


def test_the_back_end_has_levels_too() -> None:
    try:
        setPopartLogLevel("DEBUG")
        assert logs.is_wanted(logging.DEBUG)
    finally:
        logs._CHOSEN.clear()
        logs.configure({})
    for level in (0, "FOO"):
        with pytest.raises(ValueError, match="Level must be one of TRACE, DEBUG"):
            setPopartLogLevel(level)  # pyright: ignore[reportArgumentType]
