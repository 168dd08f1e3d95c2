"""Where locks, pods and partitions are kept, and how their files are opened safely.

In: an `Environment`. Out: `Roots`, the directory of this user and the one that all
users of the host share. Both usually lie in the directory for temporary files, where
anybody may put something in our way: links are not followed, and a directory of
another user is refused.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from popple.device.environment import Environment
from popple.errors import DeviceError
from popple.files import write_atomically

# Each flag is missing where the other is needed: Windows would translate line ends.
_PLAINLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_PRIVATE_DIRECTORY = 0o700
# Anybody may make a pod here; only who made one may rename or remove it.
_SHARED_ROOT = 0o1777
PRIVATE_FILE = 0o600
SHARED_FILE = 0o666


@dataclass(frozen=True)
class Roots:
    """The state directory of this user, and that of all users of the host."""

    own: Path
    shared: Path


def find_roots(environment: Environment) -> Roots:
    """Where state is kept; a directory in our place that is not ours is refused."""
    if environment.state is not None:
        return Roots(environment.state, environment.state / "shared")
    temporary = Path(tempfile.gettempdir())
    own = temporary / f"popple-{get_user_key()}"
    _check_own(own)
    return Roots(own, temporary / "popple-shared")


def _check_own(root: Path) -> None:
    found = _find_status(root)
    if found is None or sys.platform == "win32":
        return
    if found.st_uid != os.getuid():
        raise DeviceError(
            "The directory for device locks belongs to another user.",
            where=str(root),
            remedy="Remove it, or name another directory in POPPLE_STATE.",
        )
    _check_is_directory(root, found)


def _check_is_directory(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise DeviceError(
            "This should be a directory of Popple's, and is a link or a file.",
            where=str(path),
            remedy="Remove it, or name another directory in POPPLE_STATE.",
        )


def _find_status(path: Path) -> os.stat_result | None:
    """What stands at a path; a link is itself, not what it leads to."""
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def make_directory(directory: Path, root: Path) -> None:
    """Make a directory for this user alone, with what is missing between it and `root`.

    What is there already must be a directory: a link might lead anywhere.
    """
    root.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    inner = directory.relative_to(root).parts
    for depth in range(1, len(inner) + 1):
        step = root.joinpath(*inner[:depth])
        step.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)
        _check_is_directory(step, step.lstat())


def make_shared_root(root: Path) -> None:
    """Make the directory in which every user of the host may create a pod."""
    try:
        root.mkdir(parents=True)
        root.chmod(_SHARED_ROOT)  # not by `mkdir`, whose mode the umask reduces
    except FileExistsError:
        _check_is_directory(root, root.lstat())


def open_file(path: Path, mode: int | None) -> int:
    """Open a plain file for reading and writing, and make it if a mode is given."""
    flags = os.O_RDWR | _PLAINLY | (0 if mode is None else os.O_CREAT)
    descriptor = os.open(path, flags, mode or 0)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a plain file")
    return descriptor


def make_shared_file(path: Path) -> None:
    """Make a file that every user of the host may lock and write, whatever umask."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, SHARED_FILE)
    os.close(descriptor)
    path.chmod(SHARED_FILE)


def read_json(path: Path) -> Mapping[str, Any]:
    """The object in a JSON file; empty if the file is missing or makes no sense.

    What others left behind half done must not stop anybody.
    """
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file: readers see it as it was or as it is, never half."""
    write_atomically(path, json.dumps(content, indent=1))


@contextmanager
def saying_where(directory: Path) -> Generator[None, None, None]:
    """Turn errors of the operating system into ours, with the directory they are in."""
    try:
        yield
    except OSError as error:
        raise DeviceError(
            f"Devices cannot be locked here: {error}.",
            where=str(directory),
            remedy="Name a directory that you may write to in POPPLE_STATE.",
        ) from error


def check_name(name: str, what: str) -> str:
    """A name of a pod or a partition, which becomes part of a path."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise DeviceError(
            f"{name!r} is no name for a {what}.",
            remedy="Use up to 64 letters, digits, '.', '_' and '-', letter or digit "
            "first.",
        )
    return name


def get_user_key() -> str:
    """What tells users apart in the names of directories."""
    return getpass.getuser() if sys.platform == "win32" else str(os.getuid())


def get_user_name() -> str:
    """The user's name, or number if the host knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return get_user_key()
