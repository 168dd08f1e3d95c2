"""`popple notebook`: write, check, build, run and link notebooks.

In: notebooks (`.ipynb`), their sources (`.py`) or pages of Markdown. Out: findings,
files, and runs on virtual IPUs. Needs the extra `notebook`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib.util import find_spec

from popple.errors import UsageError
from popple.tools import notebook_arguments as given
from popple.tools.command import Command

# What the tool imports; all of them come with one extra.
_PACKAGES = ("nbformat", "nbclient", "jupytext", "ipykernel", "markdown_it")


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    table: tuple[tuple[str, str, Callable[[ArgumentParser], None], Action], ...] = (
        ("new", "Write the source of a new notebook.", given.add_new, new),
        ("check", "Check notebooks against the guidelines.", given.add_check, check),
        (
            "build",
            "Build notebook, README and program from one source.",
            given.add_build,
            build,
        ),
        ("run", "Run notebooks on virtual IPUs.", given.add_run, run_all),
        ("badge", "Make a link that runs a notebook.", given.add_badge, badge),
        ("open", "Start Jupyter with virtual IPUs.", given.add_open, open_jupyter),
    )
    for word, summary, add, action in table:
        child = actions.add_parser(
            word, help=summary, description=summary, allow_abbrev=False
        )
        add(child)
        child.set_defaults(action=action)


def run(arguments: Namespace) -> int:
    """Do one action."""
    return arguments.action(arguments)


Action = Callable[[Namespace], int]


def _require_packages() -> None:
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"Notebooks need packages that are not installed: {', '.join(missing)}.",
            remedy="pip install 'popple[notebook]'",
        )


def new(arguments: Namespace) -> int:
    """Write a source with its files, and build it."""
    _require_packages()
    from popple.notebook import scaffold

    for path in scaffold.create(
        arguments.name, arguments.directory, arguments.title, arguments.owner
    ):
        print(f"wrote {path}")
    return 0


def check(arguments: Namespace) -> int:
    """Print what is wrong; 1 if a rule is broken."""
    _require_packages()
    from popple.notebook.checking import Request, check_files
    from popple.notebook.formats import FORMATS, render_checklist

    outcome = check_files(
        Request(
            tuple(arguments.paths),
            arguments.mode,
            arguments.online,
            arguments.run,
            arguments.only,
        ),
        os.environ,
    )
    text = FORMATS[arguments.format](outcome)
    if text:
        print(text)
    if arguments.format == "text" and not arguments.no_checklist:
        print(render_checklist())
    has_failed = outcome.num_errors or (arguments.strict and outcome.num_warnings)
    return 1 if has_failed else 0


def build(arguments: Namespace) -> int:
    """Write the products of sources, or name those that are out of date."""
    _require_packages()
    from popple.notebook import building

    if arguments.check:
        stale = building.list_stale(arguments.paths)
        for path in stale:
            print(f"{path} is not what its source gives: popple notebook build")
        return 1 if stale else 0
    environment = given.environment_of(arguments) if arguments.execute else None
    for path in building.write_all(arguments.paths, environment):
        print(f"wrote {path}")
    return 0


def run_all(arguments: Namespace) -> int:
    """Run notebooks one after the other; 1 if one failed or kept an IPU."""
    _require_packages()
    from popple.notebook import running

    environment = given.environment_of(arguments)
    num_failed = 0
    for path, done in running.run_files(
        arguments.paths, environment, arguments.timeout, arguments.output
    ):
        print(running.describe(path, done), flush=True)
        num_failed += not done.passed
    return 1 if num_failed else 0


def badge(arguments: Namespace) -> int:
    """Print a badge in Markdown; with --svg, write its picture too."""
    from popple.files import write_atomically
    from popple.notebook.badge import PlatformLink, render_badge, render_svg

    link = PlatformLink(
        arguments.repository,
        arguments.file,
        arguments.container,
        arguments.machine,
        arguments.host,
    )
    if arguments.svg is not None:
        write_atomically(arguments.svg, render_svg(arguments.label))
    picture = arguments.image or (arguments.svg.name if arguments.svg else "badge.svg")
    print(render_badge(arguments.label, picture, link.address))
    return 0


def open_jupyter(arguments: Namespace) -> int:
    """Start JupyterLab, or the classic notebook, with the variables of a run."""
    program = next((p for p in ("jupyterlab", "notebook") if find_spec(p)), None)
    if program is None:
        raise UsageError("Jupyter is not installed.", remedy="pip install jupyterlab")
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    command = [sys.executable, "-m", program, *words]
    return subprocess.run(command, env=given.environment_of(arguments)).returncode


COMMAND = Command(
    "notebook", "Write, check, build and run notebooks.", add_arguments, run
)
