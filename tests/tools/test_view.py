"""`popple view`: which report is shown, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple import viewer
from popple.tools import cli


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Two reports; what is in them is the viewer's business."""
    for name in ("inference", "training"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "profile.pop").touch()
    return tmp_path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What the viewer was asked for."""
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(viewer, "serve", lambda *words: asked.append(words))
    monkeypatch.setattr(viewer, "write_html", lambda *words: asked.append(words))
    return asked


def test_serves_training_and_names_the_others(
    reports: Path,
    calls: list[tuple[object, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["view", str(reports)]) == 0
    assert calls == [(reports / "training", "127.0.0.1", 0, True)]
    assert f"popple view {reports / 'inference'}" in capsys.readouterr().out


def test_options_reach_the_viewer(
    reports: Path, calls: list[tuple[object, ...]]
) -> None:
    one = reports / "inference"
    assert cli.main(["view", str(one), "--port", "8123", "--no-browser"]) == 0
    assert calls == [(one, "127.0.0.1", 8123, False)]


def test_html_writes_a_file_instead(
    reports: Path,
    calls: list[tuple[object, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = reports / "page.html"
    assert cli.main(["view", str(reports), "--html", str(page)]) == 0
    assert calls == [(reports / "training", page)]
    assert str(page) in capsys.readouterr().out


def test_a_port_is_a_number(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["view", str(reports), "--port", "http"])
    assert "--port" in capsys.readouterr().err


def test_a_damaged_report_is_refused(
    reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # An empty file is a database without the tables of a report.
    assert cli.main(["view", str(reports), "--html", "page.html"]) == 2
    assert capsys.readouterr().err.count("popple: error: ") == 1
