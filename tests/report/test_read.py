"""What was written comes back; what cannot be read says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest

from popple import report as rp
from popple.errors import ReportError
from popple.report.schema import EXECUTION_TABLES, POPPLE_TABLES

PARTS = [part.name for part in fields(rp.ReportContents)]


@pytest.fixture
def path(contents: rp.ReportContents, tmp_path: Path) -> Path:
    return rp.write_report(contents, tmp_path)


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_every_part_comes_back(contents: rp.ReportContents, path: Path) -> None:
    with rp.open_report(path) as report:
        read = report.contents()
    for part in PARTS:
        assert getattr(read, part) == getattr(contents, part), part
        assert getattr(contents, part), f"the hand-made report has no {part}"


def test_directory_and_file_are_the_same_report(path: Path) -> None:
    with rp.open_report(path.parent) as one, rp.open_report(str(path)) as other:
        assert one.path == other.path
        assert one.graph_info == other.graph_info


def test_memory_is_arrays(path: Path) -> None:
    with rp.open_report(path) as report:
        totals = report.memory_by_tile.total_with_gaps_bytes
    assert totals.tolist() == [320] * 4 + [520] * 3 + [640]


def test_odd_paths_open(contents: rp.ReportContents, tmp_path: Path) -> None:
    odd = tmp_path / "what? 100% #1"
    rp.write_report(contents, odd)
    with rp.open_report(odd) as report:
        assert report.compilation_id == "compiled-once"


def test_parts_outlive_the_file(path: Path) -> None:
    with rp.open_report(path) as report:
        steps = report.steps
    assert report.steps is steps
    with pytest.raises(ReportError, match="closed"):
        assert report.programs


def test_reading_never_writes(path: Path) -> None:
    with rp.open_report(path) as report, pytest.raises(sqlite3.OperationalError):
        report.connection.execute("DELETE FROM steps")


def test_missing_report_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        ReportError, match=r"no profile\.pop in it.*popple run --report"
    ):
        rp.open_report(tmp_path)
    with pytest.raises(ReportError, match="no such file"):
        rp.open_report(tmp_path / "nowhere")


def assert_corrupt(path: Path, detail: str) -> None:
    text = f"{path.name}: the file is corrupt .*{detail}.*`popple run --report DIR`"
    with pytest.raises(ReportError, match=text), rp.open_report(path) as report:
        report.contents()


def test_a_text_file_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "profile.pop"
    path.write_text("hello " * 1000)
    assert_corrupt(path, "not a database")


def test_an_empty_file_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "profile.pop"
    path.touch()
    assert_corrupt(path, "no table graph_info")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_a_cut_file_is_corrupt(path: Path, part: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    assert_corrupt(path, "")


def test_overwritten_pages_are_corrupt(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))
    assert_corrupt(path, "")


@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("DROP TABLE memory_by_tile", "no table memory_by_tile"),
        ("DELETE FROM version_info", "format_version"),
        ("DELETE FROM memory_by_tile WHERE tile = 3", "7 of 8 tiles"),
        ("DELETE FROM cycles_by_tile", "compute_sets"),
        ("DELETE FROM program_types", "programs"),
        ("UPDATE programs SET children = x'0b'", "middle of a number"),
        ("ALTER TABLE runs DROP COLUMN num_steps", "num_steps"),
    ],
)
def test_damaged_tables_are_corrupt(path: Path, statement: str, detail: str) -> None:
    change(path, statement)
    assert_corrupt(path, detail)


def test_unknown_major_version_is_refused(path: Path) -> None:
    change(path, "UPDATE version_info SET major = 4")
    with pytest.raises(ReportError, match=r"format is 4\.8, Popple reads 3\.x"):
        rp.open_report(path)


def test_a_report_of_a_program_that_never_ran(path: Path) -> None:
    unused = (*EXECUTION_TABLES, *POPPLE_TABLES)
    change(path, *(f"DROP TABLE {table}" for table in unused))
    with rp.open_report(path) as report:
        assert report.steps == report.runs == report.operations == ()
        assert report.info == {}
        assert report.compute_sets[0].num_vertices == 12


def test_chips_of_variables_without_our_table(path: Path) -> None:
    rows = "VALUES (2, 2, 30, 1), (2, 2, 30, 2), (2, 2, 40, 4)"
    change(
        path,
        "DROP TABLE popple_variables",
        f"INSERT INTO var_bytes_by_eq_class {rows}",
    )
    # Tiles 1 and 2 are on chip 0, tile 4 is on chip 1.
    with rp.open_report(path) as report:
        sizes = [(each.chip, each.num_bytes) for each in report.variables]
    assert sizes == [(0, 60), (1, 40)]


def test_foreign_sidecars_are_left_alone(path: Path) -> None:
    path.with_name("debug.cbor").write_bytes(b"\x80")  # an empty list
    path.with_name("framework.json").write_text("[]")
    with rp.open_report(path) as report:
        assert report.debug_contexts == ()
        assert report.framework is None


def test_broken_sidecars_say_so(path: Path) -> None:
    path.with_name("debug.cbor").write_bytes(b"\xa1")  # a map that ends at once
    path.with_name("framework.json").write_text("{")
    with rp.open_report(path) as report:
        with pytest.raises(ReportError, match=r"debug\.cbor"):
            assert report.debug_contexts
        with pytest.raises(ReportError, match=r"framework\.json"):
            assert report.framework


def test_a_second_writing_changes_nothing(
    contents: rp.ReportContents, path: Path, tmp_path: Path
) -> None:
    with rp.open_report(path) as report:
        again = rp.write_report(report.contents(), tmp_path / "again")
    with rp.open_report(again) as report:
        assert report.contents() == replace(contents)
