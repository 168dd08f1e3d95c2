"""The text of `popple report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from popple import report as rp


def rendered(contents: rp.ReportContents, tmp_path: Path) -> str:
    with rp.open_report(rp.write_report(contents, tmp_path)) as report:
        return rp.render_summary(report)


def test_page(contents: rp.ReportContents, tmp_path: Path) -> None:
    golden = Path(__file__).with_name("golden") / "page.txt"
    assert rendered(contents, tmp_path) == golden.read_text(encoding="utf-8")


def test_what_does_not_fit_says_by_how_much(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    full = replace(contents.memory_by_tile, total_with_gaps_bytes=((8, 1100),))
    text = rendered(replace(contents, memory_by_tile=full), tmp_path)
    assert "no, 8 tiles over, the fullest by 100 B" in text


@pytest.mark.parametrize("length", [10, 300])
def test_no_line_is_wider_than_a_hundred_columns(
    contents: rp.ReportContents, tmp_path: Path, length: int
) -> None:
    long = replace(contents.operations[0], name="x" * length, kind="k" * length)
    ops = {f"aten.{index}{'y' * 20}": 1 for index in range(length)}
    info = {**contents.info, "target": "t" * length}
    wide = replace(contents, operations=(long,), generic_ops=ops, info=info)
    lines = rendered(wide, tmp_path).splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
