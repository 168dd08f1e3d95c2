"""What is left of a set of benchmarks: files for programs, a summary for people."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from popple.files import write_atomically

Table = Mapping[str, Sequence[Mapping[str, Any]]]
"""By benchmark: the results of its variants."""

_COLUMNS = ("throughput", "latency", "total_compiling_time")
_MORE_COLUMNS = ("test_duration", "loss", "result", "cmd", "env", "git_commit_hash")


def save(
    results: Table, directory: Path, extra_columns: Sequence[str], has_more: bool
) -> None:
    """Write benchmark_results.json, .csv and .xml."""
    columns = [*_COLUMNS, *(_MORE_COLUMNS if has_more else ()), *extra_columns]
    text = json.dumps(results, sort_keys=True, indent=2)
    write_atomically(directory / "benchmark_results.json", text)
    write_atomically(directory / "benchmark_results.csv", _as_csv(results, columns))
    write_atomically(directory / "benchmark_results.xml", _as_xml(results))


def render_summary(results: Table) -> str:
    """Which passed and which failed."""
    lines: list[str] = []
    num_failed = 0
    for name, result in _each(results):
        has_failed = result["exitcode"] != 0
        num_failed += has_failed
        word = "FAILED" if has_failed else "PASSED"
        lines.append(f"{word} {name}::{result['variant_name']}")
    num_passed = len(lines) - num_failed
    head = "=================== short test summary info ===================="
    tail = f"================ {num_failed} failed, {num_passed} passed ==============="
    return "\n".join([head, "", *lines, "", tail])


def _each(results: Table) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, variants in results.items():
        for result in variants:
            yield name, result


def _as_csv(results: Table, columns: Sequence[str]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(["benchmark name", "Variant name", *columns])
    for name, result in _each(results):
        found = result["results"]
        # A metric is a table of one entry: how it was reduced, and its value.
        values = [next(iter(found.get(c, {"": None}).values())) for c in columns]
        writer.writerow([name, result["variant_name"], *values])
    return file.getvalue()


def _as_xml(results: Table) -> str:
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite")
    for name, result in _each(results):
        case = ElementTree.SubElement(suite, "testcase", name=name)
        if result["exitcode"] != 0:
            ElementTree.SubElement(case, "failure")
    return ElementTree.tostring(root, encoding="unicode")
