"""Putting data into the page, and the page into a file."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from popple.errors import ReportError, UsageError
from popple.viewer import render_page, write_html
from popple.viewer.page import write_page
from tests.viewer.sample import make_view_data


def small_data(**changes: Any) -> dict[str, Any]:
    sizes = {"num_operations": 3, "num_steps": 3}
    return make_view_data(num_chips=1, tiles_per_chip=4, **sizes) | changes


def block_of(page: str) -> tuple[str, str]:
    """Attributes and text of the element that holds the data."""
    blocks = re.findall(r'<script ([^>]*id="popple-data"[^>]*)>(.*?)</script>', page)
    assert len(blocks) == 1
    return blocks[0]


def test_small_data_stay_readable_in_the_page() -> None:
    data = small_data()
    attributes, text = block_of(render_page(data))
    assert "gzip" not in attributes
    assert json.loads(text) == data


def test_large_data_are_compressed() -> None:
    data = make_view_data()
    attributes, text = block_of(render_page(data))
    assert 'data-encoding="gzip"' in attributes
    assert json.loads(gzip.decompress(base64.b64decode(text))) == data


@pytest.mark.parametrize("operations", [3, 2000])
def test_equal_data_give_equal_pages(operations: int) -> None:
    first, second = (make_view_data(num_operations=operations) for _ in range(2))
    assert render_page(first) == render_page(second)


@pytest.mark.parametrize("name", ["</script>", "<!--", "<script>", "\u2028", "\ud800"])
def test_no_name_breaks_out_of_the_page(name: str) -> None:
    _, text = block_of(render_page(small_data(title=name)))
    assert "<" not in text
    assert json.loads(text)["title"] == name


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
def test_figures_json_does_not_know_are_refused(figure: float) -> None:
    with pytest.raises(ReportError, match="not a number"):
        render_page(small_data(notes=[figure]))


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write_page(small_data(), path)
    assert path.read_text("utf-8") == render_page(small_data())
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ReportError):
        write_page(small_data(notes=[float("nan")]), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="existing folder"):
        write_page(small_data(), tmp_path / "absent" / "report.html")


def test_a_report_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ReportError):
        write_html(tmp_path / "absent", tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []
