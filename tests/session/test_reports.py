"""Whether a report is wanted, where it goes, and which runs it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.session import ProgramReport, Settings, find_report


class Writer:
    """Remembers what was to be written; leaves a file behind."""

    def __init__(self) -> None:
        self.calls: list[tuple[Path, int]] = []

    def __call__(self, directory: Path, num_runs: int) -> None:
        self.calls.append((directory, num_runs))
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "profile.pop").touch()


def test_nobody_wants_one() -> None:
    assert find_report("model", {"debug": "true"}, Settings(), Writer()) is None


@pytest.mark.parametrize(
    ("key", "runs"),
    [
        ("autoReport.all", 2),
        ("autoReport.outputGraphProfile", 1),
        ("autoReport.outputExecutionProfile", 2),
    ],
)
def test_engine_options_ask_for_one(key: str, runs: int) -> None:
    engine = {key: "True", "autoReport.directory": "here"}
    report = find_report("model", engine, Settings(), Writer())
    assert report is not None
    assert (report.directory, report.max_runs) == (Path("here/model"), runs)


def test_programs_with_directories_of_their_own_share_none(tmp_path: Path) -> None:
    engine = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    found = [
        find_report("model", engine, Settings(), Writer(), lambda: "one")
        for _ in range(2)
    ]
    names = [each.directory.name for each in found if each is not None]
    assert names == ["one", "one_2"]


def test_reports_of_a_run_do_not_replace_each_other(tmp_path: Path) -> None:
    settings = Settings(report=tmp_path)
    found = [find_report("model", {}, settings, Writer()) for _ in range(3)]
    names = [each.directory.name for each in found if each is not None]
    assert names == ["model", "model_2", "model_3"]


def test_runs_are_shown_up_to_the_limit(tmp_path: Path) -> None:
    writer = Writer()
    report = ProgramReport(tmp_path / "r", 3, writer)
    report.begin()
    for _ in range(5):
        report.add_run()
    # The first run is in the report from the beginning.
    assert [runs for _, runs in writer.calls] == [1, 2, 3]


def test_a_report_that_was_removed_is_not_written_again(tmp_path: Path) -> None:
    writer = Writer()
    report = ProgramReport(tmp_path / "r", 3, writer)
    report.begin()
    (tmp_path / "r" / "profile.pop").unlink()
    report.add_run()
    report.add_run()
    assert len(writer.calls) == 1
