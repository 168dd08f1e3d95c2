"""A program's entry in an executable cache: captured parts, modelled cycles, reports.

Parts are added as they become known: a step when it has been captured, cycles when
somebody asks for them, a report when one is written. A later run of the same program
finds what earlier ones have left.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from popple._version import __version__
from popple.files import write_atomically
from popple.graph import Graph, render_graph
from popple.session.archive import Archive, Buffer, render_json
from popple.session.cache import ExecutableCache
from popple.session.packages import own_sources
from popple.target import Target

if TYPE_CHECKING:
    from popple.options import ModelOptions

_LOG = logging.getLogger(__name__)
_COST = "cost.json"
_GRAPH = "graph.txt"


@dataclass
class KeptProgram:
    """What a cache holds, and will hold, of the program with this key.

    `description` is for people who list the cache.
    """

    cache: ExecutableCache
    key: str
    description: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.archive: Archive | None = self.cache.lookup(self.key)
        if self.archive is not None:
            _LOG.debug("Found the model in the executable cache: %s", self.archive.path)

    def add(self, parts: Mapping[str, Buffer]) -> None:
        """Keep more parts, beside those that are there."""
        # Another process may have added something meanwhile.
        there = self.cache.lookup(self.key)
        known = {} if there is None else dict(there.parts)
        description = {"version": __version__, **self.description}
        self.cache.store(self.key, {**known, **parts}, description)
        self.archive = self.cache.lookup(self.key)

    def forget(self) -> None:
        """Do as if nothing was there: what was found cannot be used."""
        self.archive = None

    # -- cost

    @property
    def cycles(self) -> int | None:
        """The modelled cycles of a call, if they are known."""
        cost = self._json(_COST)
        if not isinstance(cost, dict):
            return None
        cycles = cast("dict[str, Any]", cost).get("cycles")
        return cycles if isinstance(cycles, int) and cycles >= 0 else None

    def keep_cycles(self, cycles: int) -> None:
        """Remember the modelled cycles of a call."""
        if cycles != self.cycles:
            self.add({_COST: render_json({"cycles": cycles})})

    def write_report(
        self, directory: Path, num_runs: int, names: Sequence[str]
    ) -> bool:
        """Write the files of a report as they were kept; whether they were."""
        if self.archive is None:
            return False
        parts = self.archive.parts
        found = [parts.get(_report_part(num_runs, name)) for name in names]
        if None in found:
            return False
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in zip(names, found, strict=True):
            assert data is not None
            write_atomically(directory / name, data)
        return True

    def keep_report(self, directory: Path, num_runs: int, names: Sequence[str]) -> None:
        """Keep the files of a report that was just written."""
        self.add(
            {
                _report_part(num_runs, name): (directory / name).read_bytes()
                for name in names
            }
        )

    def _json(self, name: str) -> Any:
        if self.archive is None or name not in self.archive.parts:
            return None
        return self.archive.json(name)


def graph_part(graph: Graph) -> dict[str, bytes]:
    """The text of the captured Graph as a part of a file, for readers."""
    return {_GRAPH: render_graph(graph).encode()}


def _report_part(num_runs: int, name: str) -> str:
    return f"report/{num_runs}/{name}"


def graph_key(graph: Graph, options: ModelOptions, target: Target) -> str:
    """The key of a captured Graph, for programs that have no fingerprint."""
    # Options and target are dataclasses of plain data, so their text holds every
    # field: a changed option or chip constant gives another key.
    texts = [own_sources(), render_graph(graph), repr(options), repr(target)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
