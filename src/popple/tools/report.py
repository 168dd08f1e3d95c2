"""`popple report`: prints what a report says, for people or as JSON for programs."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from popple.tools.command import Command
from popple.tools.reports import get_reports


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", type=Path, help="where it lies")
    parser.add_argument(
        "--json", action="store_true", help="print everything, keyed by report, as JSON"
    )


def run(arguments: Namespace) -> int:
    """Print every report found in the directory."""
    paths = get_reports(arguments.directory)
    print(render_json(paths) if arguments.json else render_text(paths))
    return 0


def render_text(paths: tuple[Path, ...]) -> str:
    """The summaries one below the other, each under the path of its report."""
    from popple.report import open_report, render_summary

    parts: list[str] = []
    for path in paths:
        with open_report(path) as report:
            parts.append(f"{path}\n\n{render_summary(report).rstrip()}")
    return "\n\n".join(parts)


def render_json(paths: tuple[Path, ...]) -> str:
    """One object whose keys are the names of the reports' directories."""
    from popple.report import open_report, view_data

    data: dict[str, Any] = {}
    for path in paths:
        with open_report(path) as report:
            data[path.resolve().name] = view_data(report)
    return json.dumps(data, allow_nan=False)


COMMAND = Command("report", "Print what a report says.", add_arguments, run)
