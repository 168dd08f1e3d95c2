"""Takes the pictures of the guide: the viewer with reports made for it.

    python docs/screenshots.py            all; needs playwright and Chromium on the PATH
    python docs/screenshots.py NAME ...   those of some examples

Reports are those of programs in `examples/`, so pictures change when the viewer or the
model of the machine does, and with nothing else.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from playwright.sync_api import FloatRect, Page, sync_playwright

HERE = Path(__file__).parent
IMAGES = HERE / "images"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")

# The report whose views the guide explains one by one.
EXPLAINED = "pipelined_transformer"
VIEWS = ("summary", "memory", "liveness", "operations", "timeline")
WIDTH, HEIGHT, TIMELINE_HEIGHT = 1200, 720, 500

# What the gallery shows of each example: a view, and part of a report's directory. Of
# several reports it is the last one: programs end with what they are about.
GALLERY = {
    "digits_cnn": ("summary", "training"),
    # Its first one: with 64 micro-batches per update nothing can be told apart.
    "pipelined_transformer": ("timeline", "training/"),
    "replicated_resnet": ("memory", ""),
    "half_precision": ("liveness", ""),
    "custom_loop": ("operations", ""),
    "graph_network": ("operations", "training"),
    "keras_pipeline": ("timeline", ""),
    "will_it_fit": ("liveness", ""),
}


def write_page(example: str, wanted: str, directory: Path) -> Path:
    """A report of an example as one page: the last one whose directory is wanted."""
    command = [sys.executable, "-m", "popple.tools.cli"]
    script = HERE.parent / "examples" / f"{example}.py"
    words = ["run", "--quiet", "--report", str(directory / example), str(script)]
    subprocess.run(
        [*command, *words], check=True, cwd=directory, stdout=subprocess.DEVNULL
    )
    found = sorted(path.parent for path in directory.rglob("profile.pop"))
    chosen = [each for each in found if wanted in f"{each.relative_to(directory)}/"]
    page = directory / f"{example}.html"
    subprocess.run([*command, "view", "--html", str(page), str(chosen[-1])], check=True)
    return page


def shoot(tab: Page, page: Path, view: str, picture: Path) -> None:
    """One view of a report, once everything is drawn."""
    tab.goto(f"{page.as_uri()}#{view}")
    tab.reload()
    tab.wait_for_load_state("networkidle")
    height = TIMELINE_HEIGHT if view == "timeline" else HEIGHT
    tab.screenshot(path=picture, clip=_corner(height))


def _corner(height: int) -> FloatRect:
    """The upper part of a page."""
    return {"x": 0, "y": 0, "width": WIDTH, "height": height}


def take_pictures(tab: Page, names: Iterable[str]) -> None:
    """The pictures of some examples, each from a run of its own."""
    (IMAGES / "gallery").mkdir(parents=True, exist_ok=True)
    for name in names:
        view, wanted = GALLERY[name]
        with tempfile.TemporaryDirectory() as directory:
            page = write_page(name, wanted, Path(directory))
            shoot(tab, page, view, IMAGES / "gallery" / f"{name}.png")
            for each in VIEWS if name == EXPLAINED else ():
                shoot(tab, page, each, IMAGES / f"{each}.png")


def main() -> str | None:
    """Write the pictures, or say what is missing."""
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None:
        return "There is no Chromium on the PATH: install the package `chromium`."
    names = sys.argv[1:] or list(GALLERY)
    if unknown := sorted(set(names) - set(GALLERY)):
        return f"No picture is taken of {unknown[0]}: choose from {', '.join(GALLERY)}."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        take_pictures(
            browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}), names
        )
        browser.close()
    return None


if __name__ == "__main__":
    sys.exit(main())
