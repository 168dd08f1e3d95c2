"""benchmarks.yml: entries by name, and the variants that their parameters make.

resnet_gen_pod4:
  cmd: python3 train.py --batch-size {size}
  parameters: [[size], [4], [8]]      # one variant for each row
  data: {throughput: {regexp: 'throughput: (.*) samples', skip: 1}}
  derived: {total: {expr: '{throughput} * 2'}}
  env: {NAME: text}
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from popple.errors import UsageError, suggest

from ..yaml_files import read_yaml

# Entries of this kind hold what others refer to; they are no benchmarks.
_SHARED = "options"
_CONVERGENCE = "_conv"
_NOTEBOOK_FIELDS = frozenset({"file", "working_directory", "timeout"})
_NOTEBOOK = "python3 -m examples_utils.benchmarks.notebook_utils"


@dataclass(frozen=True)
class Benchmark:
    """An entry of a spec file; `fields` are as they stand there."""

    name: str
    path: Path
    fields: Mapping[str, Any]

    @property
    def directory(self) -> Path:
        """Where its command runs."""
        home = Path(self.fields.get("reference_directory") or self.path.parent)
        return (home / self.fields.get("location", "")).absolute()

    @property
    def needs_dataset(self) -> bool:
        """Whether it reads real data: names say so, or fields."""
        is_generated = "gen" in self.name or self.fields.get("generated")
        return not (
            is_generated or "synth" in self.name or self.fields.get("synthetic")
        )

    @property
    def command(self) -> str:
        """The command with its parameters as {names}; a notebook is run by nbclient."""
        notebook = self.fields.get("notebook")
        if notebook is None:
            return str(self._required("cmd"))
        if "cmd" in self.fields:
            raise UsageError("has both 'notebook' and 'cmd'.", where=self.name)
        return _notebook_command(self.name, notebook)

    def _required(self, field: str) -> Any:
        if field not in self.fields:
            raise UsageError(
                f"has no {field!r}.", where=f"benchmark {self.name} in {self.path}"
            )
        return self.fields[field]


@dataclass(frozen=True)
class Variant:
    """A benchmark with one choice of its parameters."""

    name: str
    benchmark: Benchmark
    parameters: Mapping[str, str]


def read_specs(paths: Iterable[Path]) -> dict[str, Benchmark]:
    """All entries of these files by name; later files win."""
    return {
        name: Benchmark(name, path, fields)
        for path in paths
        for name, fields in read_yaml(path).items()
        if isinstance(fields, Mapping)
    }


def choose(
    benchmarks: Mapping[str, Benchmark],
    names: Sequence[str] | None,
    with_convergence: bool = False,
) -> list[Benchmark]:
    """The benchmarks that are meant: those named, or all that are benchmarks."""
    for name in names or ():
        if name not in benchmarks:
            raise UsageError(
                f"Benchmark {name} not found in any of the provided spec files.",
                remedy=suggest(name, benchmarks),
            )
    chosen = [benchmarks[name] for name in names or benchmarks if _SHARED not in name]
    if names is None and not with_convergence:
        chosen = [each for each in chosen if _CONVERGENCE not in each.name]
    if not chosen:
        raise UsageError("No valid benchmarks selected.")
    return chosen


def make_variants(benchmark: Benchmark) -> list[Variant]:
    """One variant for each choice of parameters, named after it."""
    variants: list[Variant] = []
    for choice in _choices(benchmark):
        suffix = "".join(f"_{name}_{choice[name]}" for name in sorted(choice))
        variants.append(Variant(benchmark.name + suffix, benchmark, choice))
    return variants


def _choices(benchmark: Benchmark) -> list[dict[str, str]]:
    given: Any = benchmark.fields.get("parameters")
    if given is None:
        return [{}]
    if isinstance(given, list):
        # A table: its first row has the names.
        names, *rows = given
        return [dict(zip(names, map(str, row), strict=False)) for row in rows]
    if isinstance(given, Mapping):
        # Every combination; values of one parameter are separated by commas.
        values = [
            re.split(r"\s*,\s*", str(text).strip("[]")) for text in given.values()
        ]
        return [
            dict(zip(given, each, strict=True)) for each in itertools.product(*values)
        ]
    raise UsageError(
        "'parameters' are neither a list of rows nor a mapping.",
        where=f"benchmark {benchmark.name}",
    )


def _notebook_command(name: str, notebook: Any) -> str:
    given = notebook if isinstance(notebook, Mapping) else {"file": notebook}
    if unknown := sorted(set(given) - _NOTEBOOK_FIELDS):
        raise UsageError(f"'notebook' has unknown fields {unknown}.", where=name)
    words = [_NOTEBOOK, str(given["file"]), str(given.get("working_directory", "."))]
    if "timeout" in given:
        words += ["--timeout", str(given["timeout"])]
    return " ".join(words)
