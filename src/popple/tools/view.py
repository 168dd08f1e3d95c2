"""`popple view`: shows a report in the browser, or writes it as one HTML file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from popple.tools.command import Command
from popple.tools.reports import get_reports

HOST = "127.0.0.1"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", type=Path, help="where it lies")
    parser.add_argument(
        "--html",
        metavar="FILE",
        type=Path,
        help="write one self-contained file",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=int,
        default=0,
        help="serve here (default: any)",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, open nothing"
    )


def run(arguments: Namespace) -> int:
    """Show the first report of the directory and name the others."""
    path, *others = get_reports(arguments.directory)
    for other in others:
        print(f"Also there: popple view {other}")
    if arguments.html is not None:
        write_page(path, arguments.html)
    else:
        serve_page(path, arguments.port, open_browser=not arguments.no_browser)
    return 0


def write_page(report: Path, html: Path) -> None:
    from popple.viewer import write_html

    write_html(report, html)
    print(f"Wrote {html}")


def serve_page(report: Path, port: int, *, open_browser: bool) -> None:
    from popple.viewer import serve

    serve(report, HOST, port, open_browser)


COMMAND = Command("view", "Show a report in the browser.", add_arguments, run)
