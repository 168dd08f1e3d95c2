"""What happens when Python starts: next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from popple.tools.run import serve_tensorflow_names
from tensorflow_ipu import SWITCH
from tensorflow_ipu.boot import Finder, install
from tests.sources import SRC


def run_bare(code: str) -> str:
    """What a program prints in a Python that processes no .pth file."""
    command = [sys.executable, "-S", "-c", f"import sys\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_start_loads_only_itself() -> None:
    code = "before = set(sys.modules); import tensorflow_ipu.boot\n"
    added = run_bare(code + "print(*sorted(set(sys.modules) - before))")
    assert added == "tensorflow_ipu tensorflow_ipu.boot\n"


def test_the_start_file_puts_the_finder_in_front() -> None:
    line = (SRC / "popple_tensorflow.pth").read_text()
    assert line.startswith("import ")  # only such lines are run by Python's start
    assert line.count("\n") == 1
    assert "boot.Finder" in run_bare(f"{line}print(sys.meta_path[0])")


def test_the_start_file_bears_a_missing_package() -> None:
    line = (SRC / "popple_tensorflow.pth").read_text()
    assert run_bare(f"sys.path[:] = []\n{line}print(1)") == "1\n"


def test_one_finder_is_enough() -> None:
    install()
    install()
    assert sys.meta_path.count(Finder) == 1  # pyright: ignore[reportArgumentType]


def test_popple_run_starts_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [finder for finder in sys.meta_path if finder is not Finder]
    monkeypatch.setattr(sys, "meta_path", list(others))
    serve_tensorflow_names()
    assert sys.meta_path == [Finder, *others]


@pytest.mark.parametrize("name", ["json", "torch.keras", "tensorflow_hub", "kerasx"])
def test_other_imports_are_left_alone(name: str) -> None:
    assert Finder.find_spec(name) is None


def test_the_switch_turns_everything_off(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "tensorflow.python.ipu"
    assert Finder.find_spec(name) is not None
    monkeypatch.setenv(SWITCH, "off")
    assert Finder.find_spec(name) is None
