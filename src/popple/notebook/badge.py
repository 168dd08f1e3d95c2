"""Links that run a notebook on a platform, and the picture that they show.

In: repository, notebook, machine and image of the platform. Out: an address with its
query encoded, Markdown, an SVG file that lies beside the notebooks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from popple.errors import UsageError

# Part of the published convention; platforms come and go, so it can be changed.
DEFAULT_HOST = "https://console.paperspace.com"
DEFAULT_MACHINE = "Free-IPU-POD4"

# Verdana's mean width at 11 pixels; enough for a frame with some air.
_PIXELS_PER_LETTER = 7
_HEIGHT = 20

_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" \
aria-label="{text}">
  <title>{text}</title>
  <rect width="{width}" height="{height}" rx="3" fill="{colour}"/>
  <text x="{middle}" y="14" fill="#fff" text-anchor="middle" \
font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{text}</text>
</svg>
"""


@dataclass(frozen=True)
class PlatformLink:
    """Where a notebook runs: `repository` is `organisation/name`, `file` is in it."""

    repository: str
    file: str
    container: str
    machine: str = DEFAULT_MACHINE
    host: str = DEFAULT_HOST

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repository):
            raise UsageError(
                f"{self.repository!r} is no repository.",
                remedy="Write organisation/name.",
            )
        if ":" not in self.container.rpartition("/")[2]:
            raise UsageError(
                f"The container {self.container!r} has no tag.",
                remedy="Write image:tag, so that readers get the version you tested.",
            )

    @property
    def address(self) -> str:
        """The whole link, its query encoded."""
        pairs = (
            ("machine", self.machine),
            ("container", self.container),
            ("file", "/" + self.file.lstrip("/")),
        )
        host = self.host.rstrip("/")
        return f"{host}/github/{self.repository}?{encode_query(pairs)}"


def encode_query(pairs: Iterable[tuple[str, str]]) -> str:
    """A query in which only letters, digits and `-._~` stand for themselves."""
    return "&".join(f"{quote(k, safe='')}={quote(v, safe='')}" for k, v in pairs)


def render_badge(label: str, image: str, address: str) -> str:
    """A picture that is a link, in Markdown."""
    return f"[![{label}]({image})]({address})"


def render_svg(text: str, colour: str = "#3b5bdb") -> str:
    """A small picture with a text; needs no server."""
    width = _PIXELS_PER_LETTER * len(text) + 16
    return _SVG.format(
        text=escape(text),
        colour=escape(colour),
        width=width,
        height=_HEIGHT,
        middle=width // 2,
    )
