"""The viewer in a real browser: every view, as a file and served, and its controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.viewer.sample import make_empty_view_data, make_view_data
from tests.viewer.visit import Visit, serving

pytestmark = pytest.mark.browser

# What a view must contain to count as drawn.
CONTENT = {
    "summary": ".verdict[data-fits] .fill",
    "memory": ".uplot canvas",
    "liveness": ".variable-row",
    "operations": ".table-row",
    "timeline": ".timeline canvas",
}

Html = Callable[[dict[str, Any]], str]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return make_view_data(num_chips=2, tiles_per_chip=64, num_steps=50)


def is_painted(visit: Visit, selector: str) -> bool:
    """Whether a canvas has at least two colours on it."""
    script = """canvas => {
        const {width, height} = canvas;
        const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
        return new Set(new Uint32Array(data.buffer)).size > 1;
    }"""
    return visit.page.locator(selector).first.evaluate(script)


@pytest.mark.parametrize("visit", ["light", "dark"], indirect=True)
@pytest.mark.parametrize("view", CONTENT)
def test_every_view_of_a_file_has_content(
    visit: Visit, html: Html, data: dict[str, Any], view: str
) -> None:
    address = html(data)
    visit.open(address, view)
    visit.page.wait_for_selector(CONTENT[view])
    assert visit.outside_requests(address) == []


@pytest.mark.parametrize("view", CONTENT)
def test_every_view_of_a_served_report_has_content(
    visit: Visit, data: dict[str, Any], view: str
) -> None:
    with serving(data) as server:
        visit.open(server.url, view)
        visit.page.wait_for_selector(CONTENT[view])
        assert visit.outside_requests(server.url) == []
        assert f"{server.url}data.json" in visit.requests


@pytest.mark.parametrize(
    ("view", "canvas"),
    [
        ("memory", ".uplot canvas"),
        ("memory", ".tile-map canvas"),
        ("liveness", ".uplot canvas"),
        ("timeline", ".timeline canvas"),
    ],
)
def test_canvases_are_painted(
    visit: Visit, html: Html, data: dict[str, Any], view: str, canvas: str
) -> None:
    visit.open(html(data), view)
    visit.page.wait_for_selector(canvas)
    visit.page.wait_for_function("new Promise(r => requestAnimationFrame(() => r(1)))")
    assert is_painted(visit, canvas)


@pytest.mark.parametrize(("fill", "word"), [(0.9, "Fits"), (1.3, "Does not fit")])
def test_the_verdict(visit: Visit, html: Html, fill: float, word: str) -> None:
    visit.open(html(make_view_data(num_chips=1, tiles_per_chip=64, fill=fill)))
    assert visit.text(".verdict-word") == word


def test_summary_shows_groups_and_notes(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data))
    text = visit.text("main")
    assert all(group["group"] in text for group in data["summary"])
    assert all(note in text for note in data["notes"])


@pytest.mark.parametrize("view", ["memory", "liveness", "operations", "timeline"])
def test_an_empty_view_says_so(visit: Visit, html: Html, view: str) -> None:
    visit.open(html(make_empty_view_data()), view)
    assert "holds no" in visit.text(f'[data-view="{view}"]')


def test_the_timeline_is_listed_only_where_there_is_one(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data))
    assert visit.page.locator('[data-tab="timeline"]').count() == 1
    visit.open(html(make_empty_view_data()))
    assert visit.page.locator('[data-tab="timeline"]').count() == 0


def test_data_of_another_format_are_refused(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.page.goto(html(data | {"format": 3}))
    assert "format 2" in visit.text('[role="alert"]')


def test_names_from_a_report_are_text_not_markup(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    title = "</script><img src=x onerror=alert(1)><!--"
    visit.open(html(data | {"title": title, "notes": [title]}))
    assert visit.text("h1") == title
    assert visit.page.locator("img").count() == 0


def test_tabs_work_from_the_keyboard(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data))
    visit.page.focus('[data-tab="summary"]')
    visit.page.keyboard.press("ArrowRight")
    visit.page.wait_for_selector('[data-view="memory"]')
    visit.page.keyboard.press("ArrowLeft")
    visit.page.wait_for_selector('[data-view="summary"]')


def test_a_chip_is_chosen_by_link_and_by_control(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "memory?chip=1")
    assert "IPU 1" in visit.text(".breakdown .scope")
    visit.page.get_by_role("radio", name="0").check()
    assert visit.page.url.endswith("#memory?chip=0")
    assert "IPU 0" in visit.text(".breakdown .scope")


def test_a_tile_is_named_under_the_pointer_and_picked(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "memory?chip=1")
    # The first tile of chip 1, below the label of 20 pixels.
    visit.page.click(".tile-map canvas", position={"x": 3, "y": 23})
    shown = visit.page.locator(".tooltip:not([hidden])")
    assert shown.inner_text().startswith("Tile 64 · IPU 1")
    assert "Tile 64" in visit.text(".breakdown .scope")


def test_categories_can_be_hidden(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "memory?chart=categories")
    category = visit.page.get_by_role("button", name="Vertex code")
    category.click()
    assert visit.page.url.endswith("hide=vertexCode")
    assert category.get_attribute("aria-pressed") == "false"
    # A key press needs the focus, which must survive the redrawing.
    visit.page.keyboard.press("Space")
    assert category.get_attribute("aria-pressed") == "true"


def test_categories_without_a_byte_are_not_offered(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "memory?chart=categories")
    assert "dwarf" in data["memory"]["categories"]
    assert visit.page.get_by_role("button", name="Constant").count() == 1
    assert visit.page.get_by_role("button", name="Dwarf").count() == 0


def test_the_chart_names_the_tile_under_the_pointer(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "memory")
    visit.page.hover(".uplot .u-over", position={"x": 1, "y": 50})
    shown = visit.page.locator(".tooltip:not([hidden])")
    assert shown.inner_text().startswith("Tile 0 · IPU 0")


def test_liveness_opens_on_the_fullest_chip(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "liveness")
    # Chip 1 has more always-live memory and, from the same seed, a similar rest.
    assert visit.page.get_by_role("radio", name="1", exact=True).is_checked()
    peak = next(p for p in data["liveness"]["peaks"] if p["chip"] == 1)
    assert peak["variables"][0]["name"] in visit.text(".variable-row")


def test_ten_thousand_operations_need_few_elements(visit: Visit, html: Html) -> None:
    data = make_view_data(num_chips=1, tiles_per_chip=64, num_operations=10_000)
    visit.open(html(data), "operations")
    assert visit.text('[role="status"]') == "10,000 operations"
    assert visit.page.locator(".table-row").count() < 60
    visit.page.focus(".rows")
    visit.page.keyboard.press("End")
    visit.page.wait_for_selector('.table-row[aria-posinset="10000"]')


def test_operations_are_searched_and_filtered(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "operations")
    visit.page.get_by_role("searchbox").fill("softmax")
    visit.page.get_by_label("All phases").select_option("forward")
    expected = [
        operation
        for operation in data["operations"]
        if "softmax" in operation["name"] and operation["phase"] == "forward"
    ]
    assert visit.text('[role="status"]') == f"{len(expected)} of 800"
    visit.page.get_by_role("searchbox").fill("no such operation")
    assert visit.page.get_by_text("No operation matches").is_visible()


def test_operations_are_sorted_and_shown_in_detail(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "operations")
    costliest = max(data["operations"], key=lambda operation: operation["cycles"])
    assert visit.text(".table-row .name") == costliest["name"]
    assert costliest["line"] in visit.text(".detail")
    assert "slic: field 7" in visit.text(".detail .plan")
    visit.page.locator(".table-head").get_by_text("Cycles").click()
    cheapest = min(data["operations"], key=lambda operation: operation["cycles"])
    assert visit.text(".table-row .cycles") == f"{cheapest['cycles']:,}"


def test_the_timeline_zooms_selects_and_resets(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "timeline")
    # Chip 0 begins with micro-batch 0, right of the 64 pixels of its name.
    visit.page.click(".timeline canvas", position={"x": 70, "y": 40})
    assert visit.text(".slice-detail").startswith("forward 0")
    visit.page.focus(".timeline")
    visit.page.keyboard.press("w")
    assert "from=" in visit.page.url
    visit.page.keyboard.press("0")
    assert visit.page.url.endswith("#timeline")


def test_a_view_keeps_its_state_while_another_is_open(
    visit: Visit, html: Html, data: dict[str, Any]
) -> None:
    visit.open(html(data), "operations?text=gelu")
    visit.page.click('[data-tab="summary"]')
    visit.page.wait_for_selector('[data-view="summary"]')
    visit.page.click('[data-tab="operations"]')
    visit.page.wait_for_selector('[data-view="operations"]')
    assert visit.page.get_by_role("searchbox").input_value() == "gelu"
