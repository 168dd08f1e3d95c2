"""`popple advise`: why a program does not fit, and what would make it fit.

In: the directory of a report, or a script, which is captured and modelled without
computing values. Out: verdict, memory by role and remedies, each modelled.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from popple.errors import UsageError
from popple.tools import run as running
from popple.tools.command import Command, Outcome
from popple.tools.reports import get_reports

if TYPE_CHECKING:
    from popple.advice import Advice


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "popple advise [options] (DIR | SCRIPT [arguments...])"
    parser.add_argument(
        "--target",
        metavar="NAME|FILE",
        help="the machine to model a script on; a report knows its own",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="model remedies of programs that fit, too",
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument(
        "subject",
        metavar="DIR|SCRIPT",
        nargs=REMAINDER,
        help="a directory with reports, or a Python script and its arguments",
    )


def run(arguments: Namespace) -> Outcome:
    """Advice on every report of a directory, or on every program of a script."""
    words: list[str] = arguments.subject
    if not words:
        raise UsageError("Nothing to advise on.", remedy="Give a report or a script.")
    if not words[0].endswith(".py"):
        show(advise_reports(Path(words[0]), arguments.all), arguments.json)
        return 0
    script = running.Script(words[0], tuple(words[1:]), is_module=False)
    if arguments.target is not None:
        target = running.check_target(arguments.target)
        os.environ[running.TARGET_VARIABLE] = target
    os.environ[running.MODEL_ONLY_VARIABLE] = "1"
    return partial(advise_script, script, arguments.all, arguments.json)


def advise_reports(directory: Path, always: bool) -> Iterator[tuple[str, Advice]]:
    """Advice on the reports in a directory."""
    from popple.advice import advise

    for path in get_reports(directory):
        yield str(path), advise(path, always=always, progress=say)


def advise_script(script: running.Script, always: bool, is_json: bool) -> int:
    """Run a script without computing values, then advise on what it compiled."""
    from popple.advice import advise_case
    from popple.session.watching import watch_programs

    running.serve_tensorflow_names()
    sys.excepthook = partial(running.show_error, sys.excepthook)
    with watch_programs() as programs:
        running.execute_to_the_end(script)
    if not programs:
        print("popple: the script compiled no program", file=sys.stderr)
        return 1
    found = (
        (
            name,
            advise_case(
                cost.request.case, cost.modelled(), always=always, progress=say
            ),
        )
        for name, cost in programs.items()
    )
    show(found, is_json)
    return 0


def say(what: str) -> None:
    """What is being modelled, where people can see it."""
    if sys.stderr.isatty():
        print(f"popple: modelling {what}", file=sys.stderr)


def show(found: Iterator[tuple[str, Advice]], is_json: bool) -> None:
    """Print advice as it is found, or all of it as one JSON object."""
    if is_json:
        data = {name: advice.to_json() for name, advice in found}
        print(json.dumps(data, allow_nan=False))
        return
    from popple.advice import render_advice

    for name, advice in found:
        print(f"{name}\n\n{render_advice(advice)}\n")


COMMAND = Command(
    "advise", "Say what would make a program fit into memory.", add_arguments, run
)
