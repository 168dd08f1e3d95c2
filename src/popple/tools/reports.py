"""Find the reports in a directory: one itself, or one per sub-directory.

A program that trains and infers writes `DIR/training` and `DIR/inference`; a report
from elsewhere is often given directly. In: a path. Out: the paths of its reports.
"""

from __future__ import annotations

from pathlib import Path

from popple.errors import ReportError

REPORT_FILE = "profile.pop"


def list_reports(directory: Path) -> tuple[Path, ...]:
    """The directories (or the one file) that hold a report; maybe none.

    Training comes first: it is the longer run, and the one people mean.
    """
    if directory.is_file() or (directory / REPORT_FILE).is_file():
        return (directory,)
    found = (path.parent for path in directory.glob(f"*/{REPORT_FILE}"))
    return tuple(sorted(found, key=lambda path: (path.name != "training", path.name)))


def get_reports(directory: Path) -> tuple[Path, ...]:
    """Like `list_reports`, but a path without any report is refused."""
    found = list_reports(directory)
    if found:
        return found
    what = "holds no report" if directory.exists() else "does not exist"
    raise ReportError(
        f"{directory} {what}.",
        remedy=f"A report is a directory with a {REPORT_FILE}; "
        f"write one with: popple run --report {directory} script.py",
    )


def stamp_reports(directory: Path) -> dict[Path, int]:
    """When each report under a directory was last written, in ns."""
    reports = list_reports(directory) if directory.is_dir() else ()
    return {path: (path / REPORT_FILE).stat().st_mtime_ns for path in reports}
