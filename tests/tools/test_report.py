"""`popple report`: one report, several, none, a damaged one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from popple import report
from popple.tools import cli, reports


def write_sample(directory: Path) -> Path:
    """A report of one chip with four tiles and nothing on them."""
    num_columns = len(dataclasses.fields(report.MemoryByTile))
    nothing = report.runs_of([0, 0, 0, 0])
    contents = report.ReportContents(
        target=report.TargetInfo(1, 4, 1024, 1_000_000, "ipu2"),
        graph_info=report.GraphInfo(0, 0, 0, 0),
        memory_by_tile=report.MemoryByTile(*[nothing] * num_columns),
        producer_version=report.ProducerVersion("0.1.0", "", 0, 1, 0),
        compilation_id="sample",
    )
    report.write_report(contents, directory)
    return directory


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A directory as a program leaves it that infers and trains."""
    for name in ("inference", "training"):
        write_sample(tmp_path / name)
    return tmp_path


def test_the_file_name_is_that_of_the_format() -> None:
    assert reports.REPORT_FILE == report.REPORT_FILE


def test_a_report_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sample(tmp_path)
    assert cli.main(["report", str(tmp_path)]) == 0
    with report.open_report(tmp_path) as opened:
        assert report.render_summary(opened).strip() in capsys.readouterr().out


def test_every_report_of_a_directory_is_printed_training_first(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(both)]) == 0
    text = capsys.readouterr().out
    assert 0 <= text.index(str(both / "training")) < text.index(str(both / "inference"))


def test_json_is_keyed_by_report(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "--json", str(both)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data) == {"training", "inference"}
    assert data["training"]["target"] == data["inference"]["target"]


def test_a_single_file_is_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_sample(tmp_path) / report.REPORT_FILE
    assert cli.main(["report", str(file)]) == 0
    assert str(file) in capsys.readouterr().out


def test_a_damaged_report_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / report.REPORT_FILE).write_bytes(b"this is no database" * 100)
    assert cli.main(["report", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("popple: error: ")
    assert str(tmp_path) in printed.err


@pytest.mark.parametrize(
    ("name", "message"), [(".", "holds no report"), ("nosuch", "does not exist")]
)
@pytest.mark.parametrize("command", ["report", "view"])
def test_a_place_without_reports_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
    message: str,
) -> None:
    assert cli.main([command, str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "popple run --report" in error
