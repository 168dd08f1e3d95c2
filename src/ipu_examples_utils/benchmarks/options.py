"""The options of `python -m examples_utils benchmark`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

# Poplar's names of the levels that may be asked for.
LEVELS = {
    "DEBUG": "DEBUG",
    "INFO": "INFO",
    "WARNING": "WARN",
    "ERROR": "ERR",
    "CRITICAL": "ERR",
}
WITHOUT_EFFECT = {
    "--ignore-errors": "errors are counted and the next benchmark runs",
    "--no-code-sync": "poprun hosts share their files",
    "--remove-dirs-after": "nothing is copied to other hosts",
}
"""Flags that are accepted and change nothing, with what holds anyway."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add all options of the command."""
    add = parser.add_argument
    add("--spec", nargs="+", default=["./benchmarks.yml"], help="files of benchmarks")
    add("--benchmark", nargs="+", metavar="NAME", help="which to run (default: all)")
    add("--log-dir", type=Path, help="where logs and results go")
    add("--logging", choices=LEVELS, default="INFO", help="level of Poplar's log")
    add("--timeout", type=float, help="seconds that a benchmark may take")
    add("--stop-on-error", action="store_true", help="stop at the first failure")
    add("--additional-metrics", action="store_true", help="more columns in the CSV")
    add("--csv-metrics", nargs="+", default=[], help="metrics to add to the CSV")
    add("--custom-metrics-files", nargs="+", default=[], help="files with functions")
    add("--include-convergence", action="store_true", help="also names with _conv")
    add("--compile-only", action="store_true", help="pass --compile-only on")
    add("--allow-wandb", action="store_true", help="keep --wandb arguments")
    add("--profile", action="store_true", help="write reports (autoReport.all)")
    add("--gc-monitor", action="store_true", help="run gc-monitor every 5 seconds")
    add("--requirements-file", help="no effect: what a program needs is installed")
    add("--progress-trace-period", type=int, default=1, help="no effect: no spinner")
    for name, reason in WITHOUT_EFFECT.items():
        add(name, action="store_true", help=f"no effect: {reason}")
