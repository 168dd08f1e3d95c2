"""The executable cache: what is known about models that were compiled before.

One JSON file per model in the directory the program chose, named by a hash of all
that the compiled model depends on. It holds the captured graph and, once someone has
asked for it, the modelled cycles, so that a later run need not model them again.
Values are traced anew each time: that is quick, and no code is ever read from a file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from popple.files import write_atomically
from popple.graph import Graph, render_graph
from popple.target import Target

from ._device import is_ipu_model
from ._errors import Error
from ._logging import logger
from ._version import __version__
from .options import Options

if TYPE_CHECKING:
    from popple.options import ModelOptions

__all__ = ["CacheEntry", "ExecutableCache", "find_cache"]


@dataclass(frozen=True)
class CacheEntry:
    """What is kept of one compiled model; `cycles` is None until they are modelled."""

    version: str
    name: str
    graph: str
    cycles: int | None = None


def find_cache(options: Options) -> Path | None:
    """The directory of the cache, if the program wants one."""
    values = options._Popart.options
    if not values.get("enableEngineCaching"):
        return None
    if is_ipu_model(options):
        logger.warning("The executable cache is not used on the IPU model.")
        return None
    return Path(values.get("cachePath") or ".")


class ExecutableCache:
    """The file of one compiled model."""

    def __init__(
        self, directory: Path, graph: Graph, options: ModelOptions, target: Target
    ) -> None:
        text = render_graph(graph)
        self._fresh = CacheEntry(__version__, graph.name, text)
        key = "\n".join([__version__, text, repr(options), repr(target)])
        digest = hashlib.sha256(key.encode()).hexdigest()
        self.path = directory / f"{digest}.json"

    def open(self) -> CacheEntry:
        """What is known; from now on there is a file."""
        found = self._read()
        if found is not None:
            logger.debug("Found the model in the executable cache: %s", self.path)
            return found
        self._write(self._fresh)
        return self._fresh

    def keep_cycles(self, cycles: int) -> None:
        """Remember the modelled cycles."""
        self._write(replace(self._fresh, cycles=cycles))

    def _read(self) -> CacheEntry | None:
        try:
            entry = CacheEntry(**json.loads(self.path.read_text("utf-8")))
        except OSError:  # not there; if it cannot be written either, that is said
            return None
        except (ValueError, TypeError):
            logger.warning("%s in the executable cache is damaged.", self.path)
            return None
        is_same = replace(entry, cycles=None) == self._fresh
        return (
            entry if is_same and isinstance(entry.cycles, (int, type(None))) else None
        )

    def _write(self, entry: CacheEntry) -> None:
        directory = self.path.parent
        try:
            directory.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, json.dumps(asdict(entry)))
        except OSError as error:
            raise Error(
                f"The executable cache {directory} cannot be written: {error}. Give "
                "enableExecutableCaching() a directory that you may write to."
            ) from error
