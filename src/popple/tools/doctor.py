"""`popple doctor`: what is installed, what works, and what to do about the rest.

Every check yields `Finding`s. Only what Popple itself cannot do without counts as
broken, and makes the exit status 1; a framework nobody needs may be missing, but not
all of them.
"""

from __future__ import annotations

import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from popple._version import __version__
from popple.errors import PoppleError
from popple.text_table import render_table
from popple.tools.command import Command
from popple.tools.installed import ask_version, find_program, find_version

OLDEST_PYTHON = (3, 10)
NEWEST_PYTHON = (3, 13)


State: TypeAlias = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Finding:
    """What one check found; `remedy` says what to do unless all is well."""

    subject: str
    state: State
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Package:
    """An optional distribution: what it is for and how to get it."""

    name: str
    purpose: str
    extra: str
    advice: str = ""


@dataclass(frozen=True)
class HostTool:
    """An optional program on PATH: its names, what it is for and how to get it."""

    subject: str
    names: tuple[str, ...]
    purpose: str
    remedy: str


CORE_PACKAGES = ("numpy", "cbor2", "filelock", "tqdm")

PACKAGES = (
    Package(
        "torch",
        "PopTorch programs",
        "torch",
        "; before, for the build without CUDA, which is smaller by gigabytes: pip "
        "install torch --index-url https://download.pytorch.org/whl/cpu",
    ),
    Package("tensorflow", "TensorFlow programs", "tensorflow"),
    Package("tf_keras", "Keras programs", "tensorflow"),
    Package("onnx", "ONNX files of PopTorch programs", "onnx"),
)

# What it takes to run programs of one kind.
FRAMEWORKS = (frozenset({"torch"}), frozenset({"tensorflow", "tf_keras"}))

HOST_TOOLS = (
    HostTool(
        "chromium",
        ("chromium", "chromium-browser", "google-chrome", "chrome"),
        "the tests of the viewer",
        "Install your system's chromium package.",
    ),
    HostTool(
        "node",
        ("node",),
        "rebuilding the viewer (a built one is included)",
        "Install Node 20 or later.",
    ),
)


def check_python() -> Iterator[Finding]:
    """Whether this Python is one that Popple supports."""
    is_supported = OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON
    detail = f"{platform.python_version()} on {platform.platform()}"
    yield Finding(
        "python",
        "ok" if is_supported else "broken",
        detail,
        "" if is_supported else "Use Python 3.10 to 3.13.",
    )


def check_core_packages() -> Iterator[Finding]:
    """Whether what Popple always needs is installed."""
    for name in CORE_PACKAGES:
        found = find_version(name)
        if found:
            yield Finding(name, "ok", found)
        else:
            yield Finding(name, "broken", "not installed", "pip install popple")


def check_packages() -> Iterator[Finding]:
    """Which frameworks are installed."""
    for package in PACKAGES:
        found = find_version(package.name)
        if found:
            yield Finding(package.name, "ok", found)
        else:
            detail = f"needed for {package.purpose}"
            remedy = f"pip install 'popple[{package.extra}]'{package.advice}"
            yield Finding(package.name, "missing", detail, remedy)


def check_programs() -> Iterator[Finding]:
    """Which programs are on PATH."""
    for program in HOST_TOOLS:
        path = find_program(program.names)
        if path:
            yield Finding(program.subject, "ok", f"{ask_version(path)} ({path})")
        else:
            detail = f"needed for {program.purpose}"
            yield Finding(program.subject, "missing", detail, program.remedy)


def check_targets() -> Iterator[Finding]:
    """Whether all built-in targets load, and the one that is modelled by default."""
    # Imported here: a broken installation should fail in this check, not before all.
    from popple.device import find_machine
    from popple.target import list_systems

    yield attempt("targets", lambda: f"{len(list_systems())} load")
    yield attempt("default target", lambda: find_machine().system.name)


def check_locks() -> Iterator[Finding]:
    """Whether devices can be locked against other processes."""
    from popple.device import Pod, list_machines

    def count() -> str:
        holders = [h for machine in list_machines() for h in Pod(machine).holders()]
        return f"{len(holders)} chips in use"

    yield attempt("device locks", count)


def attempt(subject: str, work: Callable[[], str]) -> Finding:
    """What came of some work: its result, or the error and its remedy."""
    try:
        return Finding(subject, "ok", work())
    except PoppleError as error:
        where = f" ({error.where})" if error.where else ""
        return Finding(subject, "broken", error.what + where, error.remedy)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python,
    check_core_packages,
    check_packages,
    check_programs,
    check_targets,
    check_locks,
)


def add_arguments(parser: ArgumentParser) -> None:
    """Nothing to choose: the doctor looks at everything."""


def run(arguments: Namespace) -> int:
    """Print all findings; 1 if something is broken."""
    findings = [finding for check in CHECKS for finding in check()]
    is_well, verdict = judge(findings)
    print(f"{render_findings(findings)}\n\npopple {__version__} {verdict}.")
    return int(not is_well)


def judge(findings: list[Finding]) -> tuple[bool, str]:
    """Whether programs can be run here, and the sentence that says so."""
    if any(finding.state == "broken" for finding in findings):
        return False, "does not work here; see 'broken' above"
    present = {finding.subject for finding in findings if finding.state == "ok"}
    if not any(present.issuperset(framework) for framework in FRAMEWORKS):
        return False, "reads reports here, but runs no programs: install a framework"
    return True, "works here"


def render_findings(findings: list[Finding]) -> str:
    """One line per finding."""
    return render_table(
        ("what", "state", "found", "what to do"),
        ((f.subject, f.state, f.detail, f.remedy) for f in findings),
    )


COMMAND = Command("doctor", "Say what works here and what to do.", add_arguments, run)
