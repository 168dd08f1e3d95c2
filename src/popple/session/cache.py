"""The executable cache: graph and modelled cycles of compiled models, on disk.

One JSON file per model in the directory that the program chose, named by a hash of
graph, options, target and version. Once the cycles have been asked for, the file holds
them, so that a later run need not model them again. Steps are traced anew each time:
that is quick, and no code is ever read from a file.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from popple._version import __version__
from popple.errors import UsageError
from popple.files import write_atomically
from popple.graph import Graph, render_graph
from popple.target import Target

if TYPE_CHECKING:
    from popple.options import ModelOptions

_LOG = logging.getLogger(__name__)
_COUNT = (int, type(None))


@dataclass(frozen=True)
class CacheEntry:
    """What is kept of one compiled model; `cycles` is None until they are modelled."""

    version: str
    name: str
    graph: str
    cycles: int | None = None


class ExecutableCache:
    """The file of one compiled model."""

    def __init__(
        self, directory: Path, graph: Graph, options: ModelOptions, target: Target
    ) -> None:
        text = render_graph(graph)
        # Options and target are dataclasses of plain data, so their text holds every
        # field: a changed option or chip constant gives another file.
        self._fresh = CacheEntry(__version__, graph.name, text)
        key = "\n".join([__version__, text, repr(options), repr(target)])
        digest = hashlib.sha256(key.encode()).hexdigest()
        self.path = directory / f"{digest}.json"

    def open(self) -> CacheEntry:
        """The entry of this model, written to its file if there was none."""
        found = self._read()
        if found is not None:
            _LOG.debug("Found the model in the executable cache: %s", self.path)
            return found
        self._write(self._fresh)
        return self._fresh

    def keep_cycles(self, cycles: int) -> None:
        """Remember the modelled cycles."""
        self._write(replace(self._fresh, cycles=cycles))

    def _read(self) -> CacheEntry | None:
        try:
            fields = json.loads(self.path.read_text("utf-8"))
            entry = CacheEntry(**fields)
        except OSError:  # not there; if it cannot be written either, that is said
            return None
        except (ValueError, TypeError):
            _LOG.warning("%s in the executable cache is damaged.", self.path)
            return None
        # The name is a digest, but the file is the user's to copy and edit: cycles are
        # taken only if they were made of the same graph by the same version.
        is_same = replace(entry, cycles=None) == self._fresh
        return entry if is_same and type(fields.get("cycles")) in _COUNT else None

    def _write(self, entry: CacheEntry) -> None:
        directory = self.path.parent
        try:
            directory.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, json.dumps(asdict(entry)))
        except OSError as error:
            raise UsageError(
                f"The executable cache {directory} cannot be written: {error}.",
                remedy="Name a directory that you may write to.",
            ) from error
