"""Takes the pictures of the guide: the viewer with a report made for it.

    python docs/screenshots.py            needs playwright and a Chromium on the PATH

The report is that of `examples/pipelined_transformer.py`, so pictures change when the
viewer or the model of the machine does, and with nothing else.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
VIEWS = ("summary", "memory", "liveness", "operations", "timeline")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")


def write_report(directory: Path) -> Path:
    """The report of the example, as one page."""
    command = [sys.executable, "-m", "popple.tools.cli"]
    script = HERE.parent / "examples" / "pipelined_transformer.py"
    words = ["run", "--quiet", "--report", str(directory / "out"), str(script)]
    subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL)
    (first, *_) = sorted((directory / "out").rglob("profile.pop"))
    page = directory / "report.html"
    words = ["view", "--html", str(page), str(first.parent)]
    subprocess.run([*command, *words], check=True)
    return page


def take_pictures(page: Path, browser_path: str) -> None:
    """One picture of each view."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        shot = browser.new_page(viewport={"width": 1200, "height": 720})
        for view in VIEWS:
            shot.goto(f"{page.as_uri()}#{view}")
            shot.reload()
            shot.wait_for_load_state("networkidle")
            shot.screenshot(path=HERE / "images" / f"{view}.png")
        browser.close()


def main() -> str | None:
    """Write the pictures, or say what is missing."""
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None:
        return "There is no Chromium on the PATH: install the package `chromium`."
    with tempfile.TemporaryDirectory() as directory:
        take_pictures(write_report(Path(directory)), found)
    return None


if __name__ == "__main__":
    sys.exit(main())
