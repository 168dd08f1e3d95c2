"""From a report on disk to a page in the browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.viewer import write_html
from tests.sources import ROOT
from tests.viewer.visit import Visit

GENUINE = ROOT.parent / "shared" / "facts" / "profiles" / "pi.pop"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not GENUINE.exists(), reason="the genuine profile is not here"),
]


@pytest.fixture
def address(tmp_path: Path) -> str:
    path = tmp_path / "report.html"
    write_html(GENUINE, path)
    return path.as_uri()


def test_a_genuine_profile_fits_and_was_measured(visit: Visit, address: str) -> None:
    visit.open(address)
    assert visit.text(".verdict-word") == "Fits"
    assert visit.text(".badge") == "Measured"
    assert "20,869,010" in visit.text(".cards")


@pytest.mark.parametrize(
    ("view", "content"),
    [
        ("memory", ".tile-map canvas"),
        ("liveness", ".variable-row"),
        ("operations", ".table-row"),
    ],
)
def test_views_of_a_genuine_profile(
    visit: Visit, address: str, view: str, content: str
) -> None:
    visit.open(address, view)
    visit.page.wait_for_selector(content)
    assert visit.outside_requests(address) == []
