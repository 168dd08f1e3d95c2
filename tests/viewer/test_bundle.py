"""The committed page: built from the sources beside it, self-contained, licensed."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from popple.viewer.page import load_template
from tests.sources import ROOT

VIEWER = ROOT / "viewer"
CONFIG_FILES = (
    "digest.ts",
    "index.html",
    "package-lock.json",
    "package.json",
    "tsconfig.json",
    "vite.config.ts",
)


def source_digest() -> str:
    """The digest `viewer/digest.ts` writes into the page, computed without Node."""
    files = [path for path in (VIEWER / "src").rglob("*") if path.is_file()]
    names = [*CONFIG_FILES, *(path.relative_to(VIEWER).as_posix() for path in files)]
    digest = hashlib.sha256()
    for name in sorted(names):
        text = (VIEWER / name).read_bytes().replace(b"\r\n", b"\n")
        digest.update(name.encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def test_the_page_is_built_from_these_sources() -> None:
    found = re.search(r'name="popple-viewer-digest" content="(\w+)"', load_template())
    assert found is not None
    assert found[1] == source_digest(), "stale page: run `make viewer` and commit it"


def test_the_page_names_no_address_outside() -> None:
    assert (
        re.findall(r"https?://[^\s\"'`]*|url\((?!['\"]?data:)", load_template()) == []
    )


def test_the_page_loads_nothing() -> None:
    page = load_template()
    # The script and the style are inside; the only link is the icon, a data URL.
    assert re.findall(r"<script[^>]* src=", page) == []
    assert re.findall(r"<link[^>]*href=\"(?!data:)", page) == []
    assert "default-src 'none'" in page


def test_the_page_carries_the_licence_of_what_it_contains() -> None:
    page = load_template()
    assert "This page contains uPlot." in page
    assert "Permission is hereby granted, free of charge" in page


def locked_packages() -> dict[str, dict[str, Any]]:
    lock = json.loads((VIEWER / "package-lock.json").read_text("utf-8"))
    return {n.removeprefix("node_modules/"): p for n, p in lock["packages"].items()}


def test_the_lock_file_names_no_registry() -> None:
    packages = locked_packages()
    assert "uplot" in packages
    assert [name for name, entry in packages.items() if "resolved" in entry] == []


def test_the_lock_file_serves_every_platform() -> None:
    # npm leaves out what it did not find, and `npm ci` then fails on all platforms.
    packages = locked_packages()
    entries = [entry.get("optionalDependencies", {}) for entry in packages.values()]
    named = {name for optional in entries for name in optional}
    assert any("darwin" in name for name in named)
    assert named <= set(packages)
