"""Rows and their errors, tables, and the parameters of the benchmark tools."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch

from benchmarks.calibration.params import Params
from benchmarks.calibration.rows import (
    FITS,
    NotExpressed,
    Result,
    Row,
    Rows,
    render_summaries,
    render_table,
    summarise,
    write_csv,
)


def result(
    published: float, modelled: float | None, quantity: str = "cycles"
) -> Result:
    return Result(Row("a", "conv", "bow", quantity, published), modelled, "why")


def test_error_is_relative_to_the_published_figure() -> None:
    assert result(100, 110).error == pytest.approx(0.1)
    assert result(100, 80).error == pytest.approx(-0.2)


def test_fits_is_right_or_wrong() -> None:
    assert result(1, 1, FITS).error == 0
    assert result(0, 1, FITS).error == 1


def test_summary_has_groups_chips_and_all() -> None:
    found = summarise([result(100, 110), result(100, 70), result(100, None)])
    assert list(found) == [
        ("cycles", "bow", "conv"),
        ("cycles", "bow", "all"),
        ("cycles", "all", "all"),
    ]
    # Sizes 0.1 and 0.3: the median between them, the larger at nine tenths.
    summary = found["cycles", "bow", "conv"]
    assert summary.median == pytest.approx(0.2)
    assert summary.percentile_90 == pytest.approx(0.3)


def test_refused_rows_keep_the_reason() -> None:
    def refuse() -> dict[str, float]:
        raise NotExpressed("no such op")

    row = Row("a", "conv", "bow", "cycles", 1.0)
    assert Rows((row,), refuse).results() == [Result(row, None, "no such op")]


def test_table_shows_errors_and_reasons() -> None:
    lines = list(render_table([result(100, 110), result(100, None)]))
    assert "+10.0%" in lines[1]
    assert "not expressed: why" in lines[2]


def test_share_of_right_answers() -> None:
    found = summarise([result(1, 1, FITS), result(0, 1, FITS)])
    assert "50.0% right of 2" in next(render_summaries(found))


def test_results_as_csv(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_csv([result(100, 110), result(100, None)], path)
    first, second = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    assert (first["modelled"], second["reason"]) == ("110", "why")


def test_params_of_a_command_line() -> None:
    params = Params("--field {56,28} --stride 2 --bias 0 --type=half (a remark)")
    assert params.integers("field") == (56, 28)
    assert params.sizes("stride", 2) == (2, 2)
    assert not params.flag("bias", True)
    assert params.dtype("type") is torch.float16
    params.check_all_read()


def test_params_of_a_solver() -> None:
    params = Params("batches 8 a-rank 64 type float side right")
    assert params.integer("a-rank") == 64
    assert params.text("side") == "right"


def test_an_option_nobody_reads_is_refused() -> None:
    params = Params("--m 4 --flip-kernel 1")
    params.integer("m")
    with pytest.raises(NotExpressed, match="flip-kernel"):
        params.check_all_read()


def test_a_missing_option_is_refused() -> None:
    with pytest.raises(NotExpressed, match="--k"):
        Params("--m 4").integer("k")
