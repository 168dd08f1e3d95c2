"""Badges: addresses that survive a browser, and a picture that needs no server."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest

from popple.errors import UsageError
from popple.notebook.badge import PlatformLink, render_svg


def test_the_query_is_encoded() -> None:
    link = PlatformLink("org/repo", "a b/c.ipynb", "org/image:1.0")
    assert link.address == (
        "https://console.paperspace.com/github/org/repo?machine=Free-IPU-POD4"
        "&container=org%2Fimage%3A1.0&file=%2Fa%20b%2Fc.ipynb"
    )
    values = parse_qs(urlsplit(link.address).query)
    assert values["file"] == ["/a b/c.ipynb"]


@pytest.mark.parametrize(
    ("repository", "container"), [("repo", "image:1"), ("org/repo", "host:80/image")]
)
def test_what_the_convention_asks_for_is_asked_for(
    repository: str, container: str
) -> None:
    with pytest.raises(UsageError):
        PlatformLink(repository, "a.ipynb", container)


def test_the_picture_is_svg_with_its_text() -> None:
    root = ElementTree.fromstring(render_svg("Run <here>"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["aria-label"] == "Run <here>"
