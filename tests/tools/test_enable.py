"""`popple enable`: lines that a shell understands, files that can be sourced."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from popple.tools.enable import cache_variables

Popple = Callable[..., "subprocess.CompletedProcess[str]"]

needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")


def in_bash(code: str) -> str:
    return subprocess.run(["bash", "-c", code], capture_output=True, text=True).stdout


@needs_bash
def test_the_lines_set_the_variables(popple: Popple, tmp_path: Path) -> None:
    cache = tmp_path / "my cache"
    lines = popple("enable", "--cache", cache).stdout
    shown = in_bash(
        f'{lines}\necho "$POPLAR_SDK_ENABLED|$POPTORCH_CACHE_DIR|$POPART_CACHE_DIR"'
    )
    sdk, poptorch, popart = shown.strip().split("|")
    assert Path(sdk).is_dir()
    assert (poptorch, popart) == (str(cache), str(cache))


def test_caches_are_left_alone_unless_asked_for(popple: Popple) -> None:
    assert "CACHE" not in popple("enable").stdout


@needs_bash
def test_scripts_can_be_sourced_twice(popple: Popple, tmp_path: Path) -> None:
    done = popple("enable", "--script", tmp_path / "an sdk")
    poplar, popart = done.stdout.splitlines()
    before = in_bash(f"{poplar}; {popart}; echo $PATH")
    assert in_bash(f"{poplar}; {popart}; {poplar}; echo $PATH") == before
    home = tmp_path / "an sdk" / "poplar-popple"
    assert in_bash(f'{poplar}; echo "$POPLAR_SDK_ENABLED"') == f"{home}\n"
    assert in_bash(f"{popart}; command -v python") != ""


@needs_bash
def test_sourcing_puts_the_commands_first_on_a_bare_path(
    popple: Popple, tmp_path: Path
) -> None:
    poplar, popart = popple("enable", "--script", tmp_path).stdout.splitlines()
    scripts = sysconfig.get_path("scripts")
    bare = "unset POPLAR_SDK_ENABLED; PATH=/usr/bin:/bin"
    state = 'echo "$PATH|$POPLAR_SDK_ENABLED"'
    assert in_bash(f"{bare}; {state}") == "/usr/bin:/bin|\n"
    home = tmp_path / "poplar-popple"
    enabled = in_bash(f"{bare}; {poplar}; {popart}; {state}")
    assert enabled == f"{scripts}:/usr/bin:/bin|{home}\n"


@needs_bash
def test_a_script_that_is_executed_says_so(popple: Popple, tmp_path: Path) -> None:
    popple("enable", "--script", tmp_path)
    path = tmp_path / "popart-popple" / "enable.sh"
    done = subprocess.run(["bash", str(path)], capture_output=True, text=True)
    assert (done.returncode, "is to be sourced" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", "--executable_cache_path=/c"),
        ("--use_ipu_model", "--use_ipu_model --executable_cache_path=/c"),
        ("--executable_cache_path=/mine", None),
        ("/file/of/flags", None),
    ],
)
def test_flags_of_tensorflow_are_kept(flags: str, expected: str | None) -> None:
    found = cache_variables(Path("/c"), {"TF_POPLAR_FLAGS": flags})
    assert found.get("TF_POPLAR_FLAGS") == expected


def test_what_is_set_stays() -> None:
    found = cache_variables(Path("/c"), {"POPTORCH_CACHE_DIR": "/mine"})
    assert "POPTORCH_CACHE_DIR" not in found
    assert found["POPART_CACHE_DIR"] == "/c"


def test_a_directory_that_cannot_be_written_is_refused(
    popple: Popple, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    done = popple("enable", "--script", tmp_path / "file")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
