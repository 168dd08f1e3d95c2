"""Entry point of the `popple` command line: parses it, runs a command, prints errors.

In: the command line. Out: an exit status. A `PoppleError` of our own commands becomes
one line on stderr and status 2; whatever a user's program raises passes through.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from popple._version import __version__
from popple.errors import PoppleError
from popple.tools import (
    advise,
    cache,
    doctor,
    enable,
    explain,
    notebook,
    pod,
    report,
    run,
    targets,
    view,
)
from popple.tools.command import Command, Outcome

COMMANDS: tuple[Command, ...] = (
    run.COMMAND,
    report.COMMAND,
    explain.COMMAND,
    advise.COMMAND,
    view.COMMAND,
    targets.COMMAND,
    pod.COMMAND,
    cache.COMMAND,
    notebook.COMMAND,
    doctor.COMMAND,
    enable.COMMAND,
)

REFUSED = 2


def build_parser() -> ArgumentParser:
    """The parser of the whole command line, one sub-parser per command."""
    parser = ArgumentParser(
        prog="popple",
        description="Runs programs written for IPUs and models what they cost there.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"popple {__version__}")
    choices = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        child = choices.add_parser(
            command.name,
            help=command.summary,
            description=command.summary,
            allow_abbrev=False,
        )
        command.add_arguments(child)
        child.set_defaults(command=command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    arguments = build_parser().parse_args(argv)
    outcome = run_reporting_errors(arguments)
    return outcome if isinstance(outcome, int) else outcome()


def run_reporting_errors(arguments: Namespace) -> Outcome:
    """Run a command; a refusal becomes one line on stderr."""
    command: Command = arguments.command
    try:
        outcome = command.run(arguments)
        sys.stdout.flush()
    except PoppleError as error:
        print(f"popple: error: {error}", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        # The reader (`popple report x | head`) has seen enough. Python would complain
        # again when it flushes at exit, so give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return outcome


if __name__ == "__main__":
    sys.exit(main())
