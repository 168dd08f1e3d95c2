"""Functions that users add to compute numbers from what a benchmark wrote."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from popple.errors import UsageError

MetricFunction = Callable[[str, str, int], Any]
"""From stdout, stderr and exit status to a number or a table of numbers."""

_REGISTERED: dict[str, MetricFunction] = {}


def register_custom_metric(name: str, function: MetricFunction) -> None:
    """Let every benchmark have the number `name`, computed by the function."""
    _REGISTERED[name] = function


def registered_metrics() -> Iterator[tuple[str, MetricFunction]]:
    """What was registered so far."""
    yield from _REGISTERED.items()


def import_metrics_files(paths: Iterable[str]) -> None:
    """Run the files of `--custom-metrics-files`, which register functions."""
    for path in map(Path, paths):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None or not path.exists():
            raise UsageError(f"There is no Python file {str(path)!r}.")
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
