"""What a program is told when the installation does not fit."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python import ipu

from tensorflow_ipu import _finder, _notices

__all__ = ["ipu"]  # this file is one of a program for the IPU


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings given."""
    texts: list[str] = []
    monkeypatch.setattr(_notices, "warn", texts.append)
    return texts


def find_nothing(name: str, path: Any = None) -> None:
    return None


@pytest.mark.parametrize("version", ["2.20.0", "2.22.0", "2.210.1"])
def test_another_tensorflow_is_refused(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf, "__version__", version)
    with pytest.raises(ImportError, match=rf"{version}\. Install it with: pip install"):
        _finder.serve_folder("tensorflow.python.ipu")


@pytest.mark.parametrize("version", ["2.21.0", "2.21.3", "2.21"])
def test_this_tensorflow_is_taken(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf, "__version__", version)
    _finder.check_versions()


def test_a_missing_tf_keras_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_finder, "find_stock", find_nothing)
    with pytest.raises(ImportError, match=r"need tf_keras.*popple\[tensorflow\]"):
        _finder.touch()


def test_a_missing_tensorflow_is_named_to_the_program(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr(_finder, "find_stock", find_nothing)
    assert _finder.find_spec("tensorflow") is None
    assert _finder.find_keras() is None
    assert ["need TensorFlow" in text for text in said] == [True, False]
    assert all("pip install 'popple[tensorflow]'" in text for text in said)


def test_the_users_choice_of_keras_stays(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    _finder.prepare_tensorflow()
    assert _finder.os.environ["TF_USE_LEGACY_KERAS"] == "0"
    _finder.turn_to_ipu()
    assert ["TF_USE_LEGACY_KERAS=0 puts Keras 3" in text for text in said] == [True]


def test_tf_keras_is_chosen(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    _finder.prepare_tensorflow()
    assert _finder.os.environ["TF_USE_LEGACY_KERAS"] == "1"
    _finder.turn_to_ipu()
    assert said == []
