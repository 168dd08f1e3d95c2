"""`popple explain`: why an operation or a layer costs what it costs, and what did not.

In: a report and a name. Out: cycles by phase, what bounds them, the plan that was
chosen, the plans that were not, and memory; for people or as JSON for programs.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from popple.errors import UsageError
from popple.tools.command import Command
from popple.tools.reports import get_reports

if TYPE_CHECKING:
    from popple.report import Explanation


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", type=Path, help="where it lies")
    parser.add_argument(
        "operation",
        metavar="OP",
        nargs="?",
        default="",
        help="an operation's name or a part of it, or a module's path "
        "(default: the costliest operations)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print everything, keyed by report, as JSON"
    )


def run(arguments: Namespace) -> int:
    """Explain the operation in every report that has it."""
    paths = get_reports(arguments.directory)
    found = explain_all(paths, arguments.operation)
    print(render_json(found) if arguments.json else render_text(found))
    return 0


def explain_all(paths: Sequence[Path], name: str) -> dict[Path, Explanation]:
    """Explanations by report; a name that no report knows is refused."""
    from popple.report import explain_report, open_report

    found: dict[Path, Explanation] = {}
    refusals: list[UsageError] = []
    for path in paths:
        with open_report(path) as report:
            try:
                found[path] = explain_report(report, name)
            except UsageError as error:
                refusals.append(error)
    # A directory may hold training and inference; the name need be in one of them only.
    if not found:
        raise refusals[0]
    return found


def render_text(found: dict[Path, Explanation]) -> str:
    """The pages one below the other, each under the path of its report."""
    return "\n\n".join(
        f"{path}\n\n{explanation.render().rstrip()}"
        for path, explanation in found.items()
    )


def render_json(found: dict[Path, Explanation]) -> str:
    """One object whose keys are the names of the reports' directories."""
    data = {path.resolve().name: each.to_json() for path, each in found.items()}
    return json.dumps(data, allow_nan=False)


COMMAND = Command(
    "explain", "Say why an operation costs what it costs.", add_arguments, run
)
