"""The executable cache: a directory with one file for each compiled program.

    lookup    the file of a key, or None
    store     write the file of a key
    entries   what is there
    prune     remove what was not used for longest

A file is an archive (`archive.py`) called by the first 64 bits of its key, as the
vendor's caches are; the whole key is inside and compared. Any number of processes may
read, write and prune one directory: files appear complete or not at all, a reader that
finds a damaged one warns and does as if it were not there, and the one who compiles
again replaces it.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from popple.errors import DamagedFileError, UsageError
from popple.session.archive import (
    Archive,
    Buffer,
    read_archive,
    read_description,
    write_archive,
)

_LOG = logging.getLogger(__name__)
_SUFFIX = ".poplar_exec"
_KEY = "key"
_FILE_NAME = re.compile(r"[0-9a-f]{16}\.poplar_exec")
# Drafts of `popple.files`: what a killed writer leaves behind.
_DRAFT_NAME = re.compile(r"\.[0-9a-f]{16}\.poplar_exec\.[0-9a-f]{32}")
# A draft so old belongs to nobody: writing takes seconds.
_DRAFT_SECONDS = 3600.0


@dataclass(frozen=True)
class CacheEntry:
    """A file of the cache: its size and when it was last used, in seconds."""

    path: Path
    size_bytes: int
    used: float

    def describe(self) -> Mapping[str, Any]:
        """Its description; empty if the file is damaged or gone."""
        with suppress(DamagedFileError, OSError):
            return read_description(self.path)
        return {}


@dataclass(frozen=True)
class ExecutableCache:
    """A directory of compiled programs."""

    directory: Path

    def path_of(self, key: str) -> Path:
        """The file of a key, a SHA-256 in hexadecimal."""
        return self.directory / f"{key[:16]}{_SUFFIX}"

    def lookup(self, key: str) -> Archive | None:
        """What is kept under a key, if it is there and sound."""
        path = self.path_of(key)
        try:
            found = read_archive(path)
        except DamagedFileError as error:
            _LOG.warning("%s The program is compiled again.", error)
            return None
        except OSError:  # not there; if it cannot be written either, that is said
            return None
        # 64 bits name the file, so two programs may meet in one.
        if found.description.get(_KEY) != key:
            return None
        with suppress(OSError):  # a cache of somebody else's may be read only
            os.utime(path)
        return found

    def store(
        self, key: str, parts: Mapping[str, Buffer], description: Mapping[str, Any]
    ) -> Path:
        """Keep parts under a key; replaces what was there."""
        path = self.path_of(key)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_archive(path, parts, {**description, _KEY: key})
        except OSError as error:
            raise UsageError(
                f"The executable cache {self.directory} cannot be written: {error}.",
                remedy="Name a directory that you may write to.",
            ) from error
        return path

    def entries(self) -> list[CacheEntry]:
        """The files of the cache, the one last used first."""
        found = [_find_entry(path) for path in _files_of(self.directory, _FILE_NAME)]
        known = [entry for entry in found if entry is not None]
        return sorted(known, key=lambda entry: (-entry.used, entry.path))

    def prune(
        self,
        max_bytes: int | None = None,
        older_than_seconds: float | None = None,
        now: float | None = None,
    ) -> list[CacheEntry]:
        """Remove files not used for so long, then the oldest beyond a total size.

        Returns what was removed. What killed writers left behind goes as well.
        """
        now = time.time() if now is None else now
        _remove_drafts(self.directory, now - _DRAFT_SECONDS)
        total, removed = 0, list[CacheEntry]()
        for entry in self.entries():
            is_old = (
                older_than_seconds is not None and now - entry.used > older_than_seconds
            )
            is_beyond = max_bytes is not None and total + entry.size_bytes > max_bytes
            if not is_old and not is_beyond:
                total += entry.size_bytes
            elif _remove(entry.path):
                removed.append(entry)
        return removed


def _files_of(directory: Path, name: re.Pattern[str]) -> list[Path]:
    try:
        with os.scandir(directory) as found:
            names = [item.name for item in found if name.fullmatch(item.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [directory / name for name in names]


def _find_entry(path: Path) -> CacheEntry | None:
    try:
        status = path.lstat()
    except OSError:  # another process has pruned it meanwhile
        return None
    return CacheEntry(path, status.st_size, status.st_mtime)


def _remove_drafts(directory: Path, before: float) -> None:
    for path in _files_of(directory, _DRAFT_NAME):
        entry = _find_entry(path)
        if entry is not None and entry.used < before:
            _remove(path)


def _remove(path: Path) -> bool:
    """Whether a file is gone now."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _LOG.warning("%s cannot be removed: %s.", path, error)
        return False
    return True
