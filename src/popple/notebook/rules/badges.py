"""Badges: the community's, and the link that runs a notebook on a platform."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

from popple.notebook.badge import encode_query
from popple.notebook.document import Document
from popple.notebook.markdown import Span
from popple.notebook.rule import WRITTEN, Rule, Settings, Spot, automatic

_COMMUNITY = re.compile(r"communit|slack|discord|forum|discussion|\bchat\b", re.I)
_PLATFORM = re.compile(r"^run (?:on|in)\b", re.I)
_REPOSITORY = re.compile(r"/github/[\w.-]+/[\w.-]+$")
_KEYS = ("machine", "container", "file")


def platform_links(document: Document) -> list[Span]:
    """Links that start a notebook somewhere: badges, and addresses written out."""
    links = [span for span in document.spans if span.kind == "link"]
    return [link for link in links if _is_platform(link)]


def _is_platform(link: Span) -> bool:
    parts = urlsplit(link.target)
    is_address = "/github/" in parts.path and any(f"{k}=" in parts.query for k in _KEYS)
    return is_address or bool(link.image and _PLATFORM.match(link.text))


def _values(link: Span) -> dict[str, str]:
    query = urlsplit(link.target).query
    return dict(parse_qsl(query, keep_blank_values=True))


def check_community(document: Document, settings: Settings) -> Iterator[Spot]:
    badges = [span for span in document.spans if span.kind == "link" and span.image]
    found = [b for b in badges if b.target and _COMMUNITY.search(b.text + b.target)]
    if not any(settings.community in badge.target for badge in found):
        title = document.title
        yield Spot(title.cell, title.line) if title else Spot(1, 1)


def check_platform(document: Document, settings: Settings) -> Iterator[Spot]:
    if settings.hosted and not any(link.image for link in platform_links(document)):
        title = document.title
        yield Spot(title.cell, title.line) if title else Spot(1, 1)


def check_image(document: Document, settings: Settings) -> Iterator[Spot]:
    for link in platform_links(document):
        is_remote = urlsplit(link.image).scheme != ""
        if link.image and (is_remote or not document.relative(link.image).exists()):
            yield Spot(link.cell, link.line, link.image)


def check_repository(document: Document, settings: Settings) -> Iterator[Spot]:
    for link in platform_links(document):
        path = urlsplit(link.target).path
        if not _REPOSITORY.search(path):
            yield Spot(link.cell, link.line, path or link.target)


def check_keys(document: Document, settings: Settings) -> Iterator[Spot]:
    for link in platform_links(document):
        missing = [key for key in _KEYS if not _values(link).get(key)]
        if missing:
            yield Spot(link.cell, link.line, f"no {', '.join(missing)}")


def check_tag(document: Document, settings: Settings) -> Iterator[Spot]:
    for link in platform_links(document):
        container = _values(link).get("container", "")
        if container and ":" not in container.rpartition("/")[2]:
            yield Spot(link.cell, link.line, container)


def check_file(document: Document, settings: Settings) -> Iterator[Spot]:
    for link in platform_links(document):
        file = _values(link).get("file", "")
        if file and not file.startswith("/"):
            yield Spot(link.cell, link.line, file)


def check_encoding(document: Document, settings: Settings) -> Iterator[Spot]:
    for link in platform_links(document):
        query = urlsplit(link.target).query
        pairs = parse_qsl(query, keep_blank_values=True)
        if query and encode_query(pairs).upper() != query.upper():
            yield Spot(link.cell, link.line, f"write {encode_query(pairs)}")


_MAKE = "Make the link with 'popple notebook badge'."

RULES: tuple[Rule, ...] = (
    automatic(
        24,
        "badges",
        "There is no badge that leads to the community",
        "Add [![Join the community](image)](address).",
        check_community,
    ),
    automatic(
        25,
        "badges",
        "A hosted notebook has no badge to run it",
        _MAKE,
        check_platform,
        WRITTEN,
    ),
    automatic(
        26,
        "badges",
        "The badge's picture is not a file of the repository",
        "Keep the picture beside the notebooks; 'popple notebook badge' writes one.",
        check_image,
    ),
    automatic(
        27,
        "badges",
        "The badge's link names no repository",
        f"Its path ends in /github/ORGANISATION/REPOSITORY. {_MAKE}",
        check_repository,
        WRITTEN,
    ),
    automatic(
        28,
        "badges",
        "The badge's link does not say machine, container and file",
        _MAKE,
        check_keys,
    ),
    automatic(
        29,
        "badges",
        "The badge's container has no tag",
        f"Name a version: image:tag. {_MAKE}",
        check_tag,
        WRITTEN,
    ),
    automatic(
        30,
        "badges",
        "The badge's file does not begin with a slash",
        f"Give the path from the repository's root, with '/'. {_MAKE}",
        check_file,
        WRITTEN,
    ),
    automatic(
        31,
        "badges",
        "The badge's query is not URL-encoded",
        _MAKE,
        check_encoding,
    ),
)
