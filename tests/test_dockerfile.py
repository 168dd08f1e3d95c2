"""The Dockerfile, as far as it can be checked without building: its files and words."""

from __future__ import annotations

import json
import re
import shlex
import sys

from tests.sources import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# One instruction per line, comments and continuation lines taken out.
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LINES = [
    line
    for line in TEXT.replace("\\\n", " ").splitlines()
    if line.strip() and not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def arguments_of(instruction: str) -> list[list[str]]:
    lines = [line for line in LINES if line.startswith(f"{instruction} ")]
    return [shlex.split(line)[1:] for line in lines]


def copied() -> list[str]:
    return [source for words in arguments_of("COPY") for source in words[:-1]]


def test_what_is_copied_exists() -> None:
    assert copied()
    assert [name for name in copied() if not (ROOT / name).exists()] == []


def test_what_is_copied_is_not_ignored() -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{name}" for name in copied()} <= set(kept)


def test_the_build_has_what_the_project_names() -> None:
    needed = {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "src"}
    assert needed <= set(copied())


def test_the_python_and_the_extras_are_ours() -> None:
    (image,) = (words[0] for words in arguments_of("FROM"))
    version = re.fullmatch(r"python:3\.(\d+)-slim", image)
    assert version
    assert f"Programming Language :: Python :: 3.{version[1]}" in PROJECT["classifiers"]
    extras = re.findall(r"\.\[(\w+)\]", TEXT)
    assert extras
    assert set(extras) <= set(PROJECT["optional-dependencies"])


def test_the_demo_is_that_of_make() -> None:
    (command,) = (line.removeprefix("CMD ") for line in LINES if line[:4] == "CMD ")
    script = json.loads(command)[-1]
    program = re.search(r"/opt/popple/(\S+\.py)", script)
    assert program
    assert (ROOT / program[1]).exists()
    assert program[1] in (ROOT / "Makefile").read_text(encoding="utf-8")
