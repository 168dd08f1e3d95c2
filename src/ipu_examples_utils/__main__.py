"""`python -m examples_utils benchmark ...`: the command line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from popple.errors import PoppleError

from .benchmarks.options import add_arguments
from .benchmarks.run_benchmarks import run_benchmarks

# Commands of the original that are about Graphcore's own machines and repositories.
_REFUSED = {
    "load_lib_build": "custom operators in C++ are not compiled here",
    "paperspace": "it prepares machines of a cloud provider",
    "platform_assessment": "it prepares hosts with IPUs",
    "test_copyright": "it checks Graphcore's copyright lines",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    parser = ArgumentParser(prog="examples_utils", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add_arguments(commands.add_parser("benchmark", help="run benchmarks of examples"))
    for name, reason in _REFUSED.items():
        commands.add_parser(name, help=f"not part of Popple: {reason}")
    arguments, rest = parser.parse_known_args(argv)
    if arguments.command in _REFUSED:
        reason = _REFUSED[arguments.command]
        parser.error(f"{arguments.command} is not part of Popple: {reason}.")
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return run_benchmarks(arguments)
    except PoppleError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
