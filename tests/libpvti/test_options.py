"""PVTI_OPTIONS, and the name of the file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from libpvti._options import Options, read_options
from libpvti._session import file_name


def test_unset_is_off_and_anything_set_is_on() -> None:
    assert not read_options(None).is_enabled
    assert read_options("{}") == Options()
    assert read_options("what is this") == Options()
    assert read_options("[1]") == Options()


def test_every_option_is_read() -> None:
    text = (
        '{"enable": "true", "directory": "out", "channels": ["A", "B"], "duration": 2}'
    )
    found = read_options(text)
    assert found == Options(True, Path("out"), frozenset({"A", "B"}), 2.0)
    assert found.is_wanted("A")
    assert not found.is_wanted("C")


@pytest.mark.parametrize("word", ['"false"', "false", '"0"', "0"])
def test_enable_false_is_off(word: str) -> None:
    assert not read_options(f'{{"enable": {word}}}').is_enabled


@pytest.mark.skipif(os.name == "nt", reason="no colons in names there")
def test_file_names_are_the_documented_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = time.strptime("2020-08-27 09:46:55 UTC", "%Y-%m-%d %H:%M:%S %Z")
    assert file_name(moment, 2341) == "Thu_Aug_27_09:46:55_2020_UTC_2341.pvti"


def test_an_unknown_key_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    assert read_options('{"enabled": "false"}') == Options()
    assert caplog.messages == [
        "PVTI_OPTIONS: unknown option 'enabled'. Did you mean 'enable'?"
    ]
