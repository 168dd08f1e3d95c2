"""Tool: what all gc tools have in common: options, help, exit status, JSON.

In: a `Tool` and a command line. Out: an exit status. Help is laid out like a manual
page; numbers in JSON are text, as in the documented formats.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent, wrap
from typing import TypeAlias

from popple._version import __version__
from popple.errors import DeviceError, PoppleError

PASSED = 0
FAILED = 1
BAD_USAGE = 2
NO_DEVICE = 3

_STATUS = (
    (PASSED, "passed, or the information was shown"),
    (FAILED, "the test found a fault"),
    (BAD_USAGE, "the command line or an option makes no sense"),
    (NO_DEVICE, "there is no such device, or another process holds it"),
)

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool"


class TestFailure(PoppleError):
    """The device has a fault that ends the test."""

    # The name is that of a result, not of a test: pytest is not to collect it.
    __test__ = False


@dataclass(frozen=True)
class Tool:
    """One tool: its name, what it is for, its options and its action."""

    name: str
    summary: str
    description: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    examples: tuple[str, ...] = ()
    # After `--` come the arguments of another program.
    takes_rest: bool = False


class ManualParser(ArgumentParser):
    """A parser whose help reads like a manual page."""

    def __init__(self, tool: Tool) -> None:
        super().__init__(prog=tool.name, allow_abbrev=False, add_help=False)
        self._tool = tool
        self.add_argument("-h", "--help", action="help", help="show this text")
        self.add_argument(
            "--version",
            action="version",
            version=f"{tool.name} (popple) {__version__}",
            help="show the version",
        )
        tool.add_arguments(self)

    def format_help(self) -> str:
        """NAME, SYNOPSIS, DESCRIPTION, OPTIONS, EXIT STATUS, EXAMPLES."""
        tool = self._tool
        usage = " ".join(self.format_usage().removeprefix("usage: ").split())
        rest = " -- ARGUMENTS..." if tool.takes_rest else ""
        sections = {
            "NAME": _wrap(f"{tool.name} - {tool.summary}"),
            "SYNOPSIS": _wrap(usage + rest),
            "DESCRIPTION": "\n\n".join(map(_wrap, tool.description.split("\n\n"))),
            "OPTIONS": "\n".join(_describe(action) for action in self._actions),
            "EXIT STATUS": "\n".join(f"    {code}  {what}" for code, what in _STATUS),
            "EXAMPLES": "\n".join(f"    {line}" for line in tool.examples),
        }
        shown = (f"{title}\n{body}\n" for title, body in sections.items() if body)
        return "\n".join(shown)


def run_tool(tool: Tool, argv: Sequence[str] | None) -> int:
    """Parse the command line, run the tool and turn its errors into a status."""
    arguments, rest = _split_rest(tool, sys.argv[1:] if argv is None else argv)
    parsed = ManualParser(tool).parse_args(arguments)
    if tool.takes_rest:
        parsed.rest = rest
    try:
        status = tool.run(parsed)
        sys.stdout.flush()
    except TestFailure as failure:
        # The manual promises failures of tests on stdout, where scripts look for them.
        print(f"{tool.name}: test failed: {failure}")
        return FAILED
    except PoppleError as error:
        print(f"{tool.name}: error: {error}", file=sys.stderr)
        return NO_DEVICE if isinstance(error, DeviceError) else BAD_USAGE
    except BrokenPipeError:
        # The reader (`gc-monitor | head`) has seen enough. Python would complain again
        # when it flushes at exit, so give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED
    return status


def print_json(data: Json) -> None:
    """Print data as JSON in which every scalar is text, numbers too."""
    print(json.dumps(as_text(data), indent=2))


def as_text(data: Json) -> object:
    """The same data with numbers and truth values as text."""
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, float):
        return render_number(data)
    if isinstance(data, str | int):
        return str(data)
    if isinstance(data, Mapping):
        return {key: as_text(value) for key, value in data.items()}
    return [as_text(value) for value in data]


def render_number(value: float) -> str:
    """Six significant digits and no exponent: these numbers are read by people."""
    text = f"{value:.6g}"
    return f"{value:f}" if "e" in text else text


def positive(text: str) -> int:
    """A whole number from 1 on, as the type of an option."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def add_device_option(parser: ArgumentParser) -> None:
    """`-d`: which device; without it, the first one that is free."""
    parser.add_argument(
        "-d",
        "--device-id",
        type=int,
        metavar="ID",
        help="the device, as gc-info -l numbers them; otherwise the first free IPU",
    )


def add_json_option(parser: ArgumentParser) -> None:
    """`-j`: JSON instead of text."""
    parser.add_argument(
        "-j", "--json-output", "--json", action="store_true", help="print JSON"
    )


def _split_rest(tool: Tool, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tool's own arguments, and those after `--` if it hands them on."""
    arguments = list(argv)
    if not tool.takes_rest or "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _wrap(text: str) -> str:
    words = " ".join(text.split())
    lines = wrap(words, 76, break_on_hyphens=False)
    return indent("\n".join(lines), "    ")


def _describe(action: Action) -> str:
    if action.help == SUPPRESS:
        return ""
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    if action.option_strings and action.nargs != 0:
        names += f" {_name_of_value(action)}"
    return f"    {names}\n{indent(_wrap(action.help or ''), '    ')}"


def _name_of_value(action: Action) -> str:
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    return str(action.metavar or action.dest.upper())
