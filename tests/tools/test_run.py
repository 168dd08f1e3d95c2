"""`popple run`: the program behaves as under plain Python, and gets its options."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Popple = Callable[..., "subprocess.CompletedProcess[str]"]
WriteScript = Callable[[str], Path]

SHOW = "import os; print(os.environ.get('POPPLE_{}'))"
WRITE_REPORT = """\
import os, pathlib
for name in ("training", "inference"):
    place = pathlib.Path(os.environ["POPPLE_REPORT"], name)
    place.mkdir(parents=True)
    (place / "profile.pop").touch()
"""


def run_plain(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=script.parent)


@pytest.mark.parametrize(
    "text",
    [
        "import sys; print(sys.argv, sys.path[0], __name__, __file__)",
        "import sys; sys.exit(3)",
        "import sys; sys.exit('said why')",
        "raise SystemExit",
        "def f():\n    raise ValueError('bad')\nf()",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('k')",
        "this is no Python",
        "from popple.errors import PlanError\nraise PlanError('my own')",
    ],
)
def test_behaves_as_plain_python(
    popple: Popple, write_script: WriteScript, text: str
) -> None:
    script = write_script(text)
    ours, plain = popple("run", script, "--lr", "1"), run_plain(script, "--lr", "1")
    assert ours.returncode == plain.returncode
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


def test_interrupt_ends_as_under_plain_python(
    popple: Popple, write_script: WriteScript
) -> None:
    script = write_script("raise KeyboardInterrupt")
    assert popple("run", script).returncode == run_plain(script).returncode


def test_runs_a_module(popple: Popple, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys; print(__name__, sys.argv[1:])")
    done = popple("run", "-m", "mine", "--report", "x")
    assert done.stdout == "__main__ ['--report', 'x']\n"


def test_script_imports_its_neighbour(popple: Popple, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "neighbour.py").write_text("NUMBER = 7")
    (folder / "script.py").write_text("import neighbour; print(neighbour.NUMBER)")
    assert popple("run", "folder/script.py").stdout == "7\n"


@pytest.mark.parametrize(
    ("options", "variable", "expected"),
    [
        ((), "TARGET", "None"),
        (("--target", "bow-pod16"), "TARGET", "bow-pod16"),
        ((), "REPORT", "None"),
        (("--quiet",), "QUIET", "1"),
        (("--numerics", "half-partials"), "NUMERICS", "half-partials"),
        (("--numerics", "all"), "NUMERICS", "all"),
    ],
)
def test_options_reach_the_program(
    popple: Popple,
    write_script: WriteScript,
    options: tuple[str, ...],
    variable: str,
    expected: str,
) -> None:
    done = popple("run", *options, write_script(SHOW.format(variable)))
    assert done.stdout.strip() == expected


def test_report_directory_survives_a_change_of_directory(
    popple: Popple, write_script: WriteScript, tmp_path: Path
) -> None:
    done = popple("run", "--report", "out", write_script(SHOW.format("REPORT")))
    assert done.stdout.strip() == os.path.join(tmp_path, "out")


def test_written_reports_are_announced_once(
    popple: Popple, write_script: WriteScript, tmp_path: Path
) -> None:
    script = write_script(WRITE_REPORT)
    done = popple("run", "--report", "out", script)
    assert done.stdout == ""
    assert f"popple view {tmp_path / 'out'}" in done.stderr
    assert done.stderr.count("wrote the report") == 2


def test_old_reports_are_not_announced(
    popple: Popple, write_script: WriteScript
) -> None:
    popple("run", "--quiet", "--report", "out", write_script(WRITE_REPORT))
    done = popple("run", "--report", "out", write_script("pass"))
    assert "no report was written" in done.stderr


def test_reports_are_announced_before_the_program_exits(
    popple: Popple, write_script: WriteScript
) -> None:
    script = write_script(WRITE_REPORT + "raise SystemExit(5)")
    done = popple("run", "--report", "out", script)
    assert done.returncode == 5
    assert "popple view" in done.stderr


def test_quiet_says_nothing(popple: Popple, write_script: WriteScript) -> None:
    done = popple("run", "--quiet", "--report", "out", write_script(WRITE_REPORT))
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nosuch.py",), "There is no file 'nosuch.py'"),
        ((), "Nothing to run"),
        (("-m",), "Nothing to run"),
        (("--target", "bow-pd16", "script.py"), "Did you mean 'bow-pod16'"),
        (("--target", "mine.toml", "script.py"), "mine.toml"),
        (("--numerics", "half-partial", "script.py"), "Did you mean 'half-partials'"),
    ],
)
def test_refusals(
    popple: Popple, write_script: WriteScript, words: tuple[str, ...], message: str
) -> None:
    write_script("print('ran')")
    done = popple("run", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("popple: error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_option_before_the_script_is_refused(
    popple: Popple, write_script: WriteScript
) -> None:
    done = popple("run", "--reprot", "x", write_script("print('ran')"))
    assert done.returncode == 2
    assert "ran" not in done.stdout


SHOW_CACHES = """\
import os
for name in ("POPTORCH_CACHE_DIR", "POPART_CACHE_DIR", "TF_POPLAR_FLAGS"):
    print(os.environ.get(name))
"""


def test_the_caches_of_all_frameworks_are_preset(
    popple: Popple, write_script: WriteScript, tmp_path: Path
) -> None:
    cache = tmp_path / "executables"
    shown = popple("run", write_script(SHOW_CACHES)).stdout.splitlines()
    assert shown == [str(cache), str(cache), f"--executable_cache_path={cache}"]


def test_the_caches_can_be_left_alone(
    popple: Popple, write_script: WriteScript
) -> None:
    done = popple("run", "--no-cache", write_script(SHOW_CACHES))
    assert done.stdout.splitlines() == ["None"] * 3


def test_a_cache_that_cannot_be_made_is_no_error(
    popple: Popple,
    write_script: WriteScript,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("POPLAR_EXECUTABLE_CACHE_DIR", str(tmp_path / "file" / "x"))
    done = popple("run", write_script(SHOW_CACHES))
    assert (done.returncode, done.stdout.splitlines()) == (0, ["None"] * 3)
