"""What a user gets: the wheel holds every source and data file and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.sources import ROOT, SRC

BUILD = "import sys, hatchling.build as build; build.{}(sys.argv[1])"


def build(what: str, directory: Path) -> zipfile.ZipFile:
    """The archive that pip unpacks into an environment."""
    command = [sys.executable, "-c", BUILD.format(what), str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(directory.glob("popple-*.whl")))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build("build_wheel", tmp_path_factory.mktemp("wheel"))


def shipped_files() -> set[str]:
    """Every file under src/ but byte code."""
    files = (p for p in SRC.rglob("*") if p.is_file() and p.suffix != ".pyc")
    return {path.relative_to(SRC).as_posix() for path in files}


def test_wheel_holds_the_sources_and_data(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == shipped_files()


@pytest.mark.parametrize(
    "pattern",
    ["popple/py.typed", "popple/target/data/**/*.toml", "popple/viewer/static/*.html"],
)
def test_wheel_holds_data(wheel: zipfile.ZipFile, pattern: str) -> None:
    wanted = {path.relative_to(SRC).as_posix() for path in SRC.glob(pattern)}
    assert wanted
    assert wanted <= set(wheel.namelist())


def test_wheel_has_the_command(wheel: zipfile.ZipFile) -> None:
    name = next(n for n in wheel.namelist() if n.endswith("entry_points.txt"))
    assert "popple = popple.tools.cli:main" in wheel.read(name).decode()
    assert "poprun = popple.tools.poprun:main" in wheel.read(name).decode()


def test_wheel_carries_the_licence(wheel: zipfile.ZipFile) -> None:
    assert any(Path(name).name == "LICENSE" for name in wheel.namelist())


def test_both_kinds_of_installation_start_with_python(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    editable = build("build_editable", tmp_path).namelist()
    assert "popple_tensorflow.pth" in wheel.namelist()
    # Python reads these files in order of name: the path to src/ must come first.
    assert sorted(name for name in editable if name.endswith(".pth")) == [
        "_popple.pth",
        "popple_examples_utils.pth",
        "popple_horovod.pth",
        "popple_tensorflow.pth",
    ]
