"""Errors against published figures, on a fast part of each set: never larger."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.calibration.compiler import compiler_rows
from benchmarks.calibration.kernels import kernel_rows
from benchmarks.calibration.memory import memory_rows
from benchmarks.calibration.models import model_rows
from benchmarks.calibration.record import (
    FAST,
    find_worse,
    read_record,
    update_results,
    write_record,
)
from benchmarks.calibration.rows import Summary, choose, summarise
from benchmarks.calibration.vertices import vertex_rows

DATA = Path(__file__).parent / "data"
SETS = {
    "vertices": vertex_rows,
    "compiler": compiler_rows,
    "kernels": kernel_rows,
    "models": model_rows,
    "memory": memory_rows,
}
KEY = ("cycles", "bow", "all")


@pytest.mark.parametrize("name", SETS)
def test_errors_are_not_larger_than_the_record(name: str) -> None:
    rows = choose(SETS[name](DATA), FAST[name])
    summaries = summarise(result for each in rows for result in each.results())
    kept = read_record(DATA / "summary.toml")[name]
    assert list(find_worse(kept, summaries)) == []


def test_vertices_are_within_two_percent_of_the_chip() -> None:
    results = [result for rows in vertex_rows(DATA) for result in rows.results()]
    assert summarise(results)["vertex cycles", "bow", "all"].mean <= 0.02


def test_a_larger_error_is_worse(tmp_path: Path) -> None:
    path = tmp_path / "summary.toml"
    write_record({"set": {KEY: Summary(3, 0.1, 0.2, 0.1)}}, path)
    found = find_worse(read_record(path)["set"], {KEY: Summary(3, 0.1, 0.3, 0.1)})
    assert list(found) == [
        "cycles on bow, all: percentile_90 |error| is 0.3, it was 0.2"
    ]


def test_a_row_that_is_no_longer_expressed_is_worse(tmp_path: Path) -> None:
    path = tmp_path / "summary.toml"
    write_record({"set": {KEY: Summary(3, 0.1, 0.2, 0.1)}}, path)
    found = find_worse(read_record(path)["set"], {KEY: Summary(2, 0.0, 0.0, 0.0)})
    assert list(found) == [
        "cycles on bow, all: fewer rows are expressed than the 3 kept"
    ]


def test_rows_that_are_added_may_not_make_a_summary_worse(tmp_path: Path) -> None:
    path = tmp_path / "summary.toml"
    group = ("cycles", "bow", "conv")
    write_record({"set": {group: Summary(3, 0.1, 0.2, 0.1)}}, path)
    found = find_worse(read_record(path)["set"], {group: Summary(4, 0.15, 0.2, 0.12)})
    assert list(found) == [
        "cycles on bow, conv: median |error| is 0.15, it was 0.1",
        "cycles on bow, conv: mean |error| is 0.12, it was 0.1",
    ]


def test_results_of_sets_that_did_not_run_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.toml"
    update_results({"a": {KEY: Summary(3, 0.1, 0.2, 0.1)}}, path)
    update_results({"b": {KEY: Summary(1, 0.3, 0.3, 0.3)}}, path)
    kept = read_record(path)
    assert kept["a"]["cycles"]["bow"]["all"]["num_rows"] == 3
    assert kept["b"]["cycles"]["bow"]["all"]["median"] == 0.3
