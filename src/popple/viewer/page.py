"""Puts the data of a report into the viewer's page.

In: what `popple.report.view_data` returns. Out: one HTML text that needs nothing else,
or that text as a file.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from popple.errors import ReportError, UsageError
from popple.files import write_atomically
from popple.report import open_report, view_data

# The element of the page that holds the data, as the build leaves it: empty.
_EMPTY_BLOCK = '<script type="application/json" id="popple-data">null</script>'
_PLAIN_BLOCK = '<script type="application/json" id="popple-data">{}</script>'
_GZIP_BLOCK = (
    '<script type="text/plain" id="popple-data" data-encoding="gzip">{}</script>'
)

# Below this size the data stay readable in the page; above it, compressing them
# saves nine tenths of a file that is otherwise mostly repeated names.
_PLAIN_LIMIT_BYTES = 256 * 1024


def load_view_data(report_path: str | Path) -> dict[str, Any]:
    """What the viewer shows of the report at `report_path`."""
    with open_report(report_path) as report:
        return view_data(report)


def load_template() -> str:
    """The built page without data, as it is served beside `data.json`."""
    page = files("popple.viewer") / "static" / "index.html"
    return page.read_text(encoding="utf-8")


def encode_json(data: Mapping[str, Any]) -> str:
    """Compact JSON that every browser can parse."""
    try:
        return json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise ReportError(
            "the report holds a figure that is infinite or not a number.",
            remedy="Write the report again.",
        ) from error


def render_page(data: Mapping[str, Any]) -> str:
    """The page with `data` inside: one file, no requests, works offline."""
    before, block, after = load_template().partition(_EMPTY_BLOCK)
    if not block or _EMPTY_BLOCK in after:
        raise ReportError(
            "the viewer's page has no single place for data.",
            remedy="Build it again with `make viewer`.",
        )
    return before + _render_block(encode_json(data)) + after


def _render_block(text: str) -> str:
    if len(text) > _PLAIN_LIMIT_BYTES:
        # Without a time stamp equal reports give equal files.
        packed = gzip.compress(text.encode("ascii"), mtime=0)
        return _GZIP_BLOCK.format(base64.b64encode(packed).decode("ascii"))
    # "<" occurs only inside JSON strings; written so, no name ends the element.
    return _PLAIN_BLOCK.format(text.replace("<", "\\u003c"))


def write_html(report_path: str | Path, html_path: str | Path) -> None:
    """Write the report as one self-contained HTML file."""
    write_page(load_view_data(report_path), Path(html_path))


def write_page(data: Mapping[str, Any], html_path: Path) -> None:
    """Write `render_page(data)`; the file is complete or not there at all."""
    try:
        write_atomically(html_path, render_page(data))
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}.",
            where=str(html_path),
            remedy="Name a file in an existing folder you may write to.",
        ) from error
