"""`popple notebook`, from a template to a link."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from popple.tools.cli import main
from popple.tools.notebook_arguments import environment_of


@pytest.fixture
def template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["notebook", "new", "demo", "--directory", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("wrote ") == 6
    return tmp_path / "demo"


def test_a_new_notebook_passes_as_a_template(template: Path) -> None:
    command = ["notebook", "check", str(template), "--no-checklist"]
    assert main([*command, "--mode", "template", "--strict"]) == 0
    assert main(command) == 1
    assert main(["notebook", "build", "--check", str(template)]) == 0


def test_a_check_speaks_json(
    template: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = ["notebook", "check", str(template / "demo.py"), "--only", "N04"]
    assert main([*paths, "--format", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["rule"], finding["cell"]) == ("N04", 2)


def test_an_edited_product_is_out_of_date(
    template: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (template / "README.md").write_text("mine\n")
    assert main(["notebook", "build", "--check", str(template)]) == 1
    assert "README.md is not what its source gives" in capsys.readouterr().out


def test_nothing_is_overwritten(
    template: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["notebook", "new", "demo", "--directory", str(template.parent)]) == 2
    assert main(["notebook", "check", str(template / "missing.ipynb")]) == 2
    assert "There is no notebook" in capsys.readouterr().err


def test_a_badge_and_its_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    svg = tmp_path / "run.svg"
    words = ["notebook", "badge", "org/repo", "n.ipynb", "--container", "i:1"]
    assert main([*words, "--svg", str(svg), "--image", "../run.svg"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("[![Run on Gradient](../run.svg)](https://console")
    assert svg.read_text().startswith("<svg")


def test_the_environment_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    from argparse import ArgumentParser

    from popple.tools.notebook_arguments import add_environment

    monkeypatch.setenv("GRAPHCORE_POD_TYPE", "pod64")
    parser = ArgumentParser()
    add_environment(parser)
    found = environment_of(parser.parse_args(["--ipus", "4", "--cache", "/c"]))
    assert found["NUM_AVAILABLE_IPU"] == "4"
    assert found["GRAPHCORE_POD_TYPE"] == "pod4"
    assert found["POPTORCH_CACHE_DIR"] == "/c"
    assert environment_of(parser.parse_args([]))["GRAPHCORE_POD_TYPE"] == "pod64"


def test_jupyter_starts_with_the_variables_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in = tmp_path / "jupyterlab"
    stand_in.mkdir()
    lines = "import os, sys; print(sys.argv[1:], os.environ['GRAPHCORE_POD_TYPE'])\n"
    (stand_in / "__main__.py").write_text(lines)
    (stand_in / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["notebook", "open", "--ipus", "4", "--", "--no-browser"]) == 0
    assert capfd.readouterr().out == "['--no-browser'] pod4\n"


def test_popple_needs_none_of_its_packages() -> None:
    names = "{'nbformat', 'nbclient', 'jupytext', 'ipykernel', 'markdown_it'}"
    modules = "popple, popple.notebook, popple.tools.cli"
    code = f"import sys, {modules}; print(sorted(set(sys.modules) & {names}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n"
