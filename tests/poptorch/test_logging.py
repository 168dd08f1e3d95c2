"""The logger: line format, levels, and the stderr of the moment."""

from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

import poptorch
from poptorch._logging import TRACE, logger


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
