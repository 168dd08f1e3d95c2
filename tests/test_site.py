"""The guide builds without a warning and without the network, and needs no server."""

from __future__ import annotations

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import offline
from tests.sources import ROOT

# What a browser loads by itself: scripts, styles, pictures, frames.
LOADED = re.compile(
    r"<(?:script|img|iframe)\b[^>]*\bsrc=\"(https?:[^\"]*)|"
    r"<link\b[^>]*\bhref=\"(https?:[^\"]*)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = find_spec("mkdocs.__main__") if find_spec("mkdocs") else None
    if found is None or found.origin is None:
        pytest.skip("mkdocs is not installed: popple[docs]")
    target = tmp_path_factory.mktemp("site")
    words = ["build", "--strict", "--site-dir", str(target)]
    done = subprocess.run(
        offline.command(Path(found.origin), *words),
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_pages_load_nothing_from_other_servers(site: Path) -> None:
    pages = [path.read_text("utf-8") for path in site.rglob("*.html")]
    assert len(pages) > 40
    assert [found for page in pages for found in LOADED.findall(page)] == []


def test_docstrings_are_in_the_reference(site: Path) -> None:
    page = (site / "docs" / "api.html").read_text("utf-8")
    assert 'id="popple.modelled"' in page
    assert "Detach PopTorch models that are attached" in page


def test_search_needs_no_server(site: Path) -> None:
    assert (site / "search" / "search_index.js").read_text("utf-8")[
        :13
    ] == "var __index ="
    assert (site / "iframe-worker.js").exists()
