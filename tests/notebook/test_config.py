"""Configuration: where it is found, what it silences, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.errors import UsageError
from popple.notebook.checking import Request, check_files
from popple.notebook.config import Config, find_config, read_config
from popple.notebook.linter import Silence
from tests.notebook.samples import make_notebook

SILENCE = '[tool.popple.notebook.silence.N61]\nreason = "quoted"\npaths = ["a.ipynb"]\n'


def test_the_nearest_configuration_holds(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(SILENCE)
    (tmp_path / "inner").mkdir()
    expected = Config(silences=(Silence("N61", "quoted", ("a.ipynb",)),))
    assert find_config(tmp_path / "inner") == expected
    (tmp_path / "inner" / "popple-notebook.toml").write_text("hosted = true\n")
    assert find_config(tmp_path / "inner") == Config(hosted=True)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"host": True}, "no setting 'host'.*hosted"),
        ({"hosted": "yes"}, "has to be a bool"),
        ({"silence": {"N99": {"reason": "x"}}}, "no rule 'N99'"),
        ({"silence": {"N61": {}}}, "without a reason"),
    ],
)
def test_what_makes_no_sense_is_refused(table: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_config(table, "here")


def test_silenced_rules_are_counted_where_they_are_silenced(tmp_path: Path) -> None:
    import nbformat

    (tmp_path / "pyproject.toml").write_text(SILENCE)
    (tmp_path / "badge.svg").touch()
    (tmp_path / "requirements.txt").touch()
    notebook = make_notebook(body="## Train a network for digits\n\nA, e.g. b, etc.")
    for name in ("a", "b"):
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    outcome = check_files(Request((tmp_path,)), {})
    assert [(f.rule.id, Path(f.path).name) for f in outcome.findings] == [
        ("N61", "b.ipynb"),
        ("N61", "b.ipynb"),
    ]
    assert list(outcome.silenced.values()) == [2]
