"""Environment setup and dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from popple.notebook.code import Magic, imports
from popple.notebook.document import Document
from popple.notebook.rule import WRITTEN, Rule, Settings, Spot, automatic, warning
from popple.notebook.rules.structure import DEPENDENCIES, SETUP

_PIP_IN_SHELL = re.compile(r"^!\s*(?:\S*python\S* -m )?pip3? install")
_REQUIREMENTS = re.compile(r"^%pip install.*?(?:-r|--requirement)[ =]?(\S+)")
_PINNED = re.compile(r"==|~=|@|^-|^\.|^\{|\.whl$")

# What the section tells in every notebook, however it is worded.
_TOPICS = {
    "what has to be installed or enabled": r"\bSDK\b|popple|install",
    "a link to a getting started guide": r"\[[^\]]*\]\([^)]+\)",
    "how to run it in Jupyter": r"jupyter|VS Code|notebook open",
}

# Modules that need more than Python packages, and the Debian package they need.
_SYSTEM_PACKAGES = {
    "cv2": "libgl1",
    "magic": "libmagic1",
    "pyaudio": "portaudio19-dev",
    "pygraphviz": "graphviz",
    "soundfile": "libsndfile1",
    "pytesseract": "tesseract-ocr",
}


def _magics(document: Document) -> Iterator[Magic]:
    for parsed in document.code:
        yield from parsed.magics


def check_exists(document: Document, settings: Settings) -> Iterator[Spot]:
    if document.section(SETUP) is None:
        yield Spot(1, 1)


def check_single_cell(document: Document, settings: Settings) -> Iterator[Spot]:
    section = document.section(SETUP)
    if section is None:
        return
    has_code = any(block.kind == "code" for block in section.blocks)
    if has_code or len(section.cells) > 1:
        place = section.heading
        yield Spot(place.cell, place.line, f"it takes {len(section.cells)} cells")


def check_text(document: Document, settings: Settings) -> Iterator[Spot]:
    section = document.section(SETUP)
    if section is None:
        return
    text = "\n".join(block.text for block in section.blocks)
    for topic, pattern in _TOPICS.items():
        if not re.search(pattern, text, re.IGNORECASE):
            yield Spot(section.heading.cell, section.heading.line, f"it lacks {topic}")


def check_separate(document: Document, settings: Settings) -> Iterator[Spot]:
    section, setup = document.section(DEPENDENCIES), document.section(SETUP)
    if section is None:
        yield Spot(1, 1)
    elif setup is not None and section.heading.cell < setup.heading.cell:
        yield Spot(section.heading.cell, section.heading.line, "it comes before setup")


def check_pip(document: Document, settings: Settings) -> Iterator[Spot]:
    for magic in _magics(document):
        if _PIP_IN_SHELL.match(magic.text):
            yield Spot(magic.cell, magic.line, magic.text)


def _requirement_files(document: Document) -> Iterator[tuple[Magic, Path]]:
    for magic in _magics(document):
        found = _REQUIREMENTS.match(magic.text)
        if found:
            yield magic, document.relative(found[1])


def check_file_exists(document: Document, settings: Settings) -> Iterator[Spot]:
    for magic, path in _requirement_files(document):
        if not path.exists():
            yield Spot(magic.cell, magic.line, path.name)


def check_pinned(document: Document, settings: Settings) -> Iterator[Spot]:
    for magic, name in _requirements(document):
        if not _PINNED.search(name):
            yield Spot(magic.cell, magic.line, name)


def _requirements(document: Document) -> Iterator[tuple[Magic, str]]:
    """Every requirement, of files and on the command's own line."""
    for magic, path in _requirement_files(document):
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        for line in lines:
            name = line.partition("#")[0].strip()
            if name:
                yield magic, name
    for magic in _magics(document):
        if magic.text.startswith("%pip install") and not _REQUIREMENTS.match(
            magic.text
        ):
            words = magic.text.split()[2:]
            yield from ((magic, w.strip("'\"")) for w in words if not w.startswith("-"))


def check_system_packages(document: Document, settings: Settings) -> Iterator[Spot]:
    commands = " ".join(magic.text for magic in _magics(document))
    for module, cell, line in imports(document.code):
        package = _SYSTEM_PACKAGES.get(module.partition(".")[0], "")
        if package and package not in commands:
            yield Spot(cell, line, f"{module} needs {package}")


RULES: tuple[Rule, ...] = (
    automatic(
        37,
        "setup",
        f"There is no section {SETUP!r}",
        "Add it: how a reader gets a machine on which the notebook runs.",
        check_exists,
    ),
    automatic(
        38,
        "setup",
        f"{SETUP!r} is more than one cell of text",
        "Keep it in one cell, so that hosted versions can drop it.",
        check_single_cell,
        WRITTEN,
    ),
    warning(
        39,
        "setup",
        f"{SETUP!r} does not tell what it tells elsewhere",
        "Say what must be installed, link a guide, say how to run it in Jupyter.",
        check_text,
    ),
    automatic(
        40,
        "setup",
        f"{DEPENDENCIES!r} is no section of its own after {SETUP!r}",
        "Hosted versions drop the setup and keep this: separate them.",
        check_separate,
    ),
    automatic(
        41,
        "dependencies",
        "Packages are installed with !pip",
        "Use %pip, which installs where the kernel looks.",
        check_pip,
    ),
    automatic(
        42,
        "dependencies",
        "The file of requirements does not exist",
        "Put it where the command looks for it, beside the notebook.",
        check_file_exists,
        WRITTEN,
    ),
    automatic(
        43,
        "dependencies",
        "A requirement is not pinned",
        "Name its version with == or ~=.",
        check_pinned,
    ),
    warning(
        44,
        "dependencies",
        "A module needs a system package that is not installed",
        "Install it from the notebook: !apt install -y NAME.",
        check_system_packages,
    ),
)
