"""Names that examples import: served where nobody else has them."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

import ipu_examples_utils
from ipu_examples_utils import load_lib
from ipu_examples_utils.testing.test_commands import (
    CalledProcessError,
    run_command_fail_explicitly,
)

BOOT = "import ipu_examples_utils.boot; "


def python(code: str, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_the_package_is_found_by_its_name(tmp_path: Path) -> None:
    code = BOOT + "import examples_utils.testing.test_commands as t; print(t.__name__)"
    assert python(code, tmp_path).stdout == "examples_utils.testing.test_commands\n"


def test_a_genuine_package_comes_first(tmp_path: Path) -> None:
    (tmp_path / "examples_utils.py").write_text("OWNER = 'genuine'")
    code = BOOT + "import examples_utils; print(examples_utils.OWNER)"
    assert python(code, tmp_path).stdout == "genuine\n"


def test_the_command_runs_by_its_name(tmp_path: Path) -> None:
    code = (
        BOOT + "import runpy; runpy.run_module('examples_utils', run_name='__main__')"
    )
    done = python(code, tmp_path, "paperspace")
    assert done.returncode == 2
    assert "paperspace is not part of Popple" in done.stderr


def test_without_yaml_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['yaml'] = None\n"
        "from ipu_examples_utils.__main__ import main\n"
        "main(['benchmark', '--spec', 'x.yml'])"
    )
    done = python(code, tmp_path)
    assert "pip install 'popple[examples-utils]'" in done.stderr
    assert done.returncode == 2


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"has no 'plot'.*Graphcore's own"):
        _ = ipu_examples_utils.plot  # pyright: ignore
    with pytest.raises(ModuleNotFoundError, match="serves PopXL programs"):
        importlib.import_module("ipu_examples_utils.parsing.simple_parsing_tools")


def test_custom_operators_are_not_compiled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "pattern.cpp"
    path.touch()
    caplog.set_level(logging.WARNING)
    load_lib(str(path))
    assert caplog.messages == [
        "pattern.cpp is not compiled: there is no Poplar compiler."
    ]
    with pytest.raises(FileNotFoundError):
        load_lib(str(tmp_path / "none.cpp"))


def test_a_command_that_fails_shows_what_it_wrote() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    with pytest.raises(CalledProcessError, match=r"(?s)status 3.*out.*err"):
        run_command_fail_explicitly([sys.executable, "-c", code])
    said = "import sys; print('out'); print('err', file=sys.stderr)"
    quiet = run_command_fail_explicitly(
        [sys.executable, "-c", said], suppress_warnings=True
    )
    assert quiet == "out\n"


def test_a_section_of_a_file_gives_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ipu_examples_utils.parsing import file_argparse

    sections = {"small": {"lr": 1e-3, "sizes": [1, 2]}}
    monkeypatch.setattr(file_argparse, "read_yaml", lambda path: sections)
    monkeypatch.setattr(sys, "argv", ["train.py", "--config", "small", "--lr", "5"])
    parser = ArgumentParser()
    parser.add_argument("--config")
    parser.add_argument("--config_path", default="configs.yml")
    parser.add_argument("--lr", type=float)
    parser.add_argument("--sizes", type=int, nargs="+")
    found = ipu_examples_utils.parse_yaml_config(parser.parse_args(), parser)
    assert (found.lr, found.sizes) == (5.0, [1, 2])
    parser.set_defaults(config="large")
    monkeypatch.setattr(sys, "argv", ["train.py"])
    with pytest.raises(ValueError, match="unknown config large"):
        ipu_examples_utils.parse_yaml_config(parser.parse_args(), parser)
