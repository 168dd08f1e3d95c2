"""Options of Poplar: every name is known, without effect, or reported once."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from popple import logs
from popple.errors import UsageError
from popple.session import engine_options
from popple.session.poplar_options import ENGINE, TABLES, _note_option


@pytest.fixture(autouse=True)
def _nothing_noted_yet() -> Iterator[None]:
    _note_option.cache_clear()
    yield
    _note_option.cache_clear()
    logs.configure({})


def test_an_unknown_name_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    environ = {"POPLAR_ENGINE_OPTIONS": '{"autoReport.al": "true"}'}
    for _ in range(2):
        assert engine_options({}, environ) == {"autoReport.al": "true"}
    (message,) = caplog.messages
    assert message.startswith(
        "POPLAR_ENGINE_OPTIONS: unknown option 'autoReport.al'. Did you mean "
        "'autoReport.all'"
    )


@pytest.mark.parametrize("variable", [*TABLES])
def test_every_variable_is_checked(
    variable: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine_options({}, {variable: '{"zzzzzzz": 1}'})
    assert caplog.messages == [
        f"{variable}: unknown option 'zzzzzzz'. docs/environment.md lists all."
    ]
    with pytest.raises(UsageError, match=f"{variable} is not a JSON object"):
        engine_options({}, {variable: "[1]"})


def test_options_of_a_program_are_checked(caplog: pytest.LogCaptureFixture) -> None:
    engine_options({"debug.instrumnet": "true", "debug.instrument": "true"}, {})
    (message,) = caplog.messages
    assert message.startswith("engine options: unknown option 'debug.instrumnet'.")


def test_an_option_without_effect_is_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure({"POPLAR_LOG_LEVEL": "INFO"})
    engine_options({}, {"POPLAR_TARGET_OPTIONS": '{"ipuLinkTopology": "line"}'})
    line = capsys.readouterr().err
    assert "ipuLinkTopology has no effect: links are those of the target" in line


def test_known_options_are_silent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    engine_options(dict.fromkeys(ENGINE, "false"), {})
    assert caplog.messages == []
