"""What the environment asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.errors import UsageError
from popple.session import Settings, engine_options, read_settings


def test_nothing_set_is_the_default() -> None:
    assert read_settings({}) == Settings()


def test_every_variable_is_read() -> None:
    found = read_settings(
        {
            "POPPLE_TARGET": "gc200",
            "POPPLE_BACKEND": "inductor",
            "POPPLE_DEVICE": "cuda",
            "POPPLE_NUMERICS": "half-partials, all,",
            "POPPLE_REPORT": "out",
            "POPPLE_QUIET": "1",
            "POPPLE_STRICT": "1",
            "POPPLE_MODEL_ONLY": "1",
            "POPPLE_KEEP_BFLOAT16": "1",
        }
    )
    numerics = ("half-partials", "all")
    on = (True, True, True, True)
    assert found == Settings("gc200", "inductor", "cuda", numerics, Path("out"), *on)


def test_empty_variables_are_as_none() -> None:
    names = ("BACKEND", "DEVICE", "MODEL_ONLY", "NUMERICS", "REPORT", "QUIET")
    names += ("STRICT", "TARGET", "KEEP_BFLOAT16")
    assert read_settings({f"POPPLE_{name}": "" for name in names}) == Settings()


def test_the_environments_engine_options_beat_the_programs() -> None:
    environ = {"POPLAR_ENGINE_OPTIONS": '{"b": "new", "autoReport.all": true}'}
    options = engine_options({"a": 1, "b": "old"}, environ)
    assert options == {"a": "1", "b": "new", "autoReport.all": "true"}


@pytest.mark.parametrize("text", ["[1]", "{", "3"])
def test_engine_options_must_be_an_object(text: str) -> None:
    with pytest.raises(UsageError, match="POPLAR_ENGINE_OPTIONS is not a JSON object"):
        engine_options({}, {"POPLAR_ENGINE_OPTIONS": text})
