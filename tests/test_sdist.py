"""What a packager gets: the sources, and everything their tests need."""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import ROOT, sources_of_tests

BUILD = "import sys, hatchling.build as build; build.build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Paths of all files in the archive, from its root."""
    directory = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-c", BUILD, str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(directory.glob("popple-*.tar.gz"))) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def imported_modules() -> Iterator[str]:
    """Modules beside src/ that the tests import: helpers and benchmarks."""
    for source in sources_of_tests():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


def test_what_tests_import_is_packed(packed: set[str]) -> None:
    paths = (ROOT.joinpath(*name.split(".")) for name in set(imported_modules()))
    files = {
        file.relative_to(ROOT).as_posix()
        for path in paths
        for file in (path.with_suffix(".py"), path / "__init__.py")
        if file.exists()
    }
    assert any(name.startswith("benchmarks/") for name in files)
    assert files <= packed


def test_every_file_of_the_tests_is_packed(packed: set[str]) -> None:
    """Tests and what they read: golden files, tables, pages, examples."""
    tracked = subprocess.run(
        ["git", "ls-files", "tests", "examples", "docs", "viewer", "src"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if tracked.returncode:  # an unpacked archive has no history to compare with
        pytest.skip("not a checkout")
    assert {n for n in tracked.stdout.split("\n") if n} <= packed


def test_the_files_that_make_reads_are_packed(packed: set[str]) -> None:
    wanted = {"Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"}
    assert wanted <= packed
    assert all(Path(ROOT / name).exists() for name in wanted)
