"""Log lines of Poplar, PopLibs and PopART: form, levels, destinations."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from popple import logs
from popple.errors import UsageError
from popple.logs import TRACE, configure, get_logger, is_wanted


@pytest.fixture(autouse=True)
def _silent_again() -> Iterator[None]:
    yield
    configure({})


def test_nothing_is_shown_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    configure({})
    get_logger("poplar", "ENGINE").error("x")
    assert not is_wanted(logging.ERROR)
    assert capfd.readouterr() == ("", "")


def test_a_line_has_the_form_of_the_original(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure({"POPLIBS_LOG_LEVEL": "WARN", "POPLAR_LOG_LEVEL": "INFO"})
    get_logger("poplibs", "POPLIN").warning("a %d", 1)
    get_logger("poplar", "ENGINE").info("b")
    first, second = capsys.readouterr().err.splitlines()
    # 2024-04-03T08:27:01.166470Z PL:POPLIN    208191.208191 W: text
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    place = f"{os.getpid()}.{threading.get_native_id()}"
    assert re.fullmatch(rf"{time} PL:POPLIN    {place} W: a 1", first)
    assert re.fullmatch(rf"{time} PO:ENGINE   {place} I: b", second)


@pytest.mark.parametrize(
    ("level", "shown"),
    [("OFF", ""), ("ERR", "E"), ("WARN", "EW"), ("INFO", "EWI"), ("TRACE", "EWIDT")],
)
def test_a_level_shows_itself_and_what_is_worse(
    level: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure({"POPART_LOG_LEVEL": level})
    log = get_logger("popart", "session")
    for number in (40, 30, 20, 10, TRACE):
        log.log(number, "x")
    letters = re.findall(r"popart:session \S+ (\w): x", capsys.readouterr().err)
    assert "".join(letters) == shown


def test_a_module_has_a_level_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    configure({"POPLAR_LOG_LEVEL": "DEBUG", "POPLAR_TENSOR_LOG_LEVEL": "OFF"})
    get_logger("poplar", "GRAPH").debug("seen")
    get_logger("poplar", "TENSOR").error("not seen")
    assert capsys.readouterr().err.endswith("D: seen\n")


def test_lines_go_where_the_variable_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "poplar.log"
    configure({"POPLAR_LOG_LEVEL": "INFO", "POPLAR_LOG_DEST": str(file)})
    get_logger("poplar", "ENGINE").info("to the file")
    configure({"POPLAR_LOG_LEVEL": "INFO", "POPLAR_LOG_DEST": "stdout"})
    get_logger("poplar", "ENGINE").info("to stdout")
    out, err = capfd.readouterr()
    assert file.read_text().endswith("I: to the file\n")
    assert out.endswith("I: to stdout\n")
    assert err == ""


def test_the_levels_of_popart_may_be_in_a_file(tmp_path: Path) -> None:
    config = tmp_path / "conf.py"
    config.write_text('{"all": "ERR", "transform": "TRACE", "pattern": "INFO"}')
    configure({"POPART_LOG_CONFIG": str(config)})
    assert get_logger("popart", "transform").isEnabledFor(TRACE)
    assert not get_logger("popart", "session").isEnabledFor(logging.WARNING)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"POPLAR_LOG_LEVEL": "INFOS"}, "POPLAR_LOG_LEVEL: 'INFOS'.*'INFO'"),
        ({"POPART_LOG_CONFIG": "/no/file"}, "POPART_LOG_CONFIG: cannot be read"),
        ({"POPART_LOG_CONFIG": '{"session": "X"}'}, "POPART_LOG_CONFIG: 'X'"),
        (
            {"POPLAR_LOG_LEVEL": "INFO", "POPLAR_LOG_DEST": "/no/where/x.log"},
            "POPLAR_LOG_DEST: The log /no/where/x.log cannot be written",
        ),
    ],
)
def test_mistakes_are_named(environ: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        configure(environ)


def test_names_of_pythons_levels_are_understood() -> None:
    configure({"POPLAR_LOG_LEVEL": "warning"})
    assert get_logger("poplar", "ENGINE").isEnabledFor(logging.WARNING)


def test_a_level_that_a_program_sets_beats_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "_CHOSEN", {})
    logs.set_level("popart", "DEBUG")
    configure({"POPART_LOG_LEVEL": "ERR"})
    assert get_logger("popart", "session").isEnabledFor(logging.DEBUG)


def test_only_modules_that_exist_have_loggers() -> None:
    with pytest.raises(ValueError, match="poplar has no module 'POPLIN'"):
        get_logger("poplar", "POPLIN")
