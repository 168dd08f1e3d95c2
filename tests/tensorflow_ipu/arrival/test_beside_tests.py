"""What the tests of programs share is found beside the test that runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tensorflow.python import ipu

__all__ = ["ipu"]  # this file is one of a program for the IPU


def write_beside(
    root: Path, package: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder as a test finds it: named like the package, and on the path."""
    folder = root.joinpath(*package.split("."))
    folder.mkdir(parents=True)
    (folder / f"{module}.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a test imported is not there for the next one."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("package", "module"),
    [
        ("tensorflow.python.ipu.tests", "shared"),
        ("keras.ipu.extensions", "shared_test_utils"),
    ],
)
def test_helpers_of_tests_are_found(
    package: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_beside(tmp_path, package, module, monkeypatch)
    assert importlib.import_module(f"{package}.{module}").VALUE == 7


def test_nothing_else_is_taken_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_beside(tmp_path, "keras.ipu.extensions", "shared", monkeypatch)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("keras.ipu.extensions.shared")


def test_without_such_a_folder_there_is_no_package() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tensorflow.python.ipu.tests")
