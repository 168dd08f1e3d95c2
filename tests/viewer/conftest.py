"""A headless Chromium for the viewer's tests, and pages written for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from popple.viewer.page import write_page
from tests.viewer.visit import Visit

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on PATH; install the package `chromium` to run this")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found, args=list(CHROMIUM_ARGS)
        )
        yield launched
        launched.close()


@pytest.fixture(params=["light"])
def visit(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh page; a test may ask for colour schemes by indirect parameters."""
    context = browser.new_context(
        color_scheme=request.param, viewport={"width": 1280, "height": 800}
    )
    visit = Visit(context.new_page())
    visit.watch()
    yield visit
    context.close()
    assert visit.complaints == []


@pytest.fixture
def html(tmp_path: Path) -> Callable[[dict[str, Any]], str]:
    """Writes data as a page and gives its address."""

    def write(data: dict[str, Any]) -> str:
        path = tmp_path / "report.html"
        write_page(data, path)
        return path.as_uri()

    return write
