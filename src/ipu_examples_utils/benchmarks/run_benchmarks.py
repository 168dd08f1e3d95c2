"""From spec files to results: runs every variant of the benchmarks that are meant."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from popple.errors import UsageError

from . import metrics
from .custom_metrics import import_metrics_files, registered_metrics
from .results import render_summary, save
from .spec import Benchmark, Variant, choose, make_variants, read_specs
from .variant import (
    Monitor,
    Outcome,
    make_command,
    make_environment,
    run_variant,
    split_command,
)

_LOG = logging.getLogger(__package__)
_ERROR_LINES = 100


def run_benchmarks(arguments: Namespace) -> int:
    """Run what the arguments name; 0 if all passed, else 1."""
    specs = read_specs([Path(path) for path in arguments.spec])
    chosen = choose(specs, arguments.benchmark, arguments.include_convergence)
    for benchmark in chosen:
        _check_dataset(benchmark)
    import_metrics_files(arguments.custom_metrics_files)
    directory = _make_directory(arguments.log_dir)
    results: dict[str, list[dict[str, Any]]] = {}
    with _logging(directory), (directory / "output.log").open("w") as listener:
        for benchmark in chosen:
            found = results.setdefault(benchmark.name, [])
            for variant in make_variants(benchmark):
                found.append(_run(variant, arguments, directory, listener))
                if arguments.stop_on_error and found[-1]["exitcode"]:
                    _LOG.error("Stopped at the first failure: --stop-on-error.")
                    return _finish(results, arguments, directory)
    return _finish(results, arguments, directory)


def _finish(
    results: dict[str, list[dict[str, Any]]], arguments: Namespace, directory: Path
) -> int:
    save(results, directory, arguments.csv_metrics, arguments.additional_metrics)
    sys.stdout.write(render_summary(results) + "\n")
    failures = (r["exitcode"] for variants in results.values() for r in variants)
    return int(any(failures))


def _run(
    variant: Variant, arguments: Namespace, directory: Path, listener: TextIO
) -> dict[str, Any]:
    """Run one variant; what is known of it."""
    command = make_command(variant, arguments)
    environ = make_environment(variant, arguments, os.environ)
    _LOG.info("Running %s: %s", variant.name, command)
    logs = directory / variant.name
    logs.mkdir(parents=True, exist_ok=True)
    watch = (
        Monitor(environ, logs / "ipu-monitor.jsonl") if arguments.gc_monitor else None
    )
    with watch or nullcontext():
        outcome = run_variant(
            split_command(command, environ),
            variant.benchmark.directory,
            environ,
            _timeout(variant.benchmark, arguments.timeout),
            listener,
        )
    (logs / "stdout").write_text(outcome.stdout, encoding="utf-8")
    (logs / "stderr").write_text(outcome.stderr, encoding="utf-8")
    if outcome.exitcode:
        tail = "\n\t".join(outcome.stderr.splitlines()[-_ERROR_LINES:])
        _LOG.error("%s exited with %d:\n\t%s", variant.name, outcome.exitcode, tail)
    return _describe(variant, command, outcome, arguments, logs)


def _describe(
    variant: Variant,
    command: str,
    outcome: Outcome,
    arguments: Namespace,
    logs: Path,
) -> dict[str, Any]:
    """The entry of a variant in benchmark_results.json."""
    results = _collect(variant, command, outcome, arguments)
    # A number that could not be found fails a benchmark that went well otherwise.
    wanted = (
        *_asked(variant, arguments, "data"),
        *_asked(variant, arguments, "derived"),
    )
    is_short = any(None in results[name].values() for name in wanted)
    return {
        "benchmark_path": str(variant.benchmark.path),
        "benchmark_name": variant.benchmark.name,
        "variant_name": variant.name,
        "params": dict(variant.parameters),
        "command": command,
        "results": results,
        "start_time": str(outcome.started),
        "end_time": str(outcome.ended),
        "compilation_end_time": str(results["total_compiling_time"]["mean"]),
        "test_duration": str(outcome.seconds),
        "exitcode": outcome.exitcode or int(is_short),
        "log_paths": {"out": str(logs / "stdout"), "err": str(logs / "stderr")},
        "sdk_path": os.environ.get("POPLAR_SDK_ENABLED", ""),
    }


def _asked(variant: Variant, arguments: Namespace, field: str) -> dict[str, Any]:
    """The metrics of a field; a program that is only compiled has none."""
    return {} if arguments.compile_only else variant.benchmark.fields.get(field) or {}


def _collect(
    variant: Variant, command: str, outcome: Outcome, arguments: Namespace
) -> metrics.Results:
    """All numbers of a variant."""
    text = f"{outcome.stdout}\n{outcome.stderr}"
    data, derived = (_asked(variant, arguments, each) for each in ("data", "derived"))
    if outcome.exitcode:
        text = ""  # numbers of a program that failed mean nothing
    results = metrics.extract(data, text, metrics.count_processes(command))
    if arguments.additional_metrics:
        results |= _more(variant, command, outcome)
    results = metrics.derive(derived, variant.parameters, results)
    results["total_compiling_time"] = {"mean": metrics.compile_seconds(text)}
    for name, function in registered_metrics():
        value = function(outcome.stdout, outcome.stderr, outcome.exitcode)
        results[name] = value if isinstance(value, dict) else {"value": value}
    return results


def _more(variant: Variant, command: str, outcome: Outcome) -> metrics.Results:
    """What `--additional-metrics` adds."""
    own = variant.benchmark.fields.get("env") or {}
    values = {
        "test_duration": outcome.seconds,
        "cmd": command,
        "result": str(not outcome.exitcode),
        "git_commit_hash": _commit_of(variant.benchmark.directory),
        "env": " ".join(f"{name}={value}" for name, value in own.items()),
    }
    return {name: {name: value} for name, value in values.items()}


def _commit_of(directory: Path) -> str:
    command = ["git", "-C", str(directory), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _check_dataset(benchmark: Benchmark) -> None:
    if benchmark.needs_dataset and "DATASETS_DIR" not in os.environ:
        raise UsageError(
            f"Benchmark '{benchmark.name}' requires a dataset, as neither 'gen' nor "
            "'synth' is in its name.",
            remedy="Set the environment variable DATASETS_DIR to where datasets are.",
        )


def _timeout(benchmark: Benchmark, given: float | None) -> float | None:
    """The shorter of what the command line and the spec allow."""
    limits = [
        float(t) for t in (given, benchmark.fields.get("timeout")) if t is not None
    ]
    return min(limits, default=None)


def _make_directory(chosen: Path | None) -> Path:
    now = f"{datetime.now():%Y-%m-%d-%H.%M.%S.%f}"
    directory = (chosen or Path(f"log_{now}")).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def _logging(directory: Path) -> Iterator[None]:
    """Let lines go to stderr and to console.log while benchmarks run."""
    form = logging.Formatter("[%(levelname)s] %(asctime)s: %(message)s")
    handlers = [
        logging.StreamHandler(),
        logging.FileHandler(directory / "console.log", encoding="utf-8"),
    ]
    _LOG.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(form)
        _LOG.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            _LOG.removeHandler(handler)
            handler.close()
