"""Who holds which chip: for each chip a lock file and a record, all in one directory.

In: chip ids. Out: locks of the chips, or the `Holder` of each chip in use. The lock
says whether a chip is held; a lock cannot say by whom, so the holder writes that down.
The record of a chip that is not locked is stale.
"""

from __future__ import annotations

import getpass
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from popple.errors import DeviceError

# The guard is held for about a millisecond per chip, and processes wait their turn.
_POLL_SECONDS = 0.005


@dataclass(frozen=True)
class Holder:
    """A process that holds a chip; `since` is a UTC time in ISO 8601."""

    chip_id: int
    pid: int
    command: str
    user: str
    since: str


class Registry:
    """The lock files and records of one pod.

    `try_take` and `read_holders` are for use inside `guard`, which keeps others from
    seeing a half-taken group of chips, or a chip as busy that is only being looked at.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def guard(self) -> Generator[None, None, None]:
        """Be the only one, in this or any process, who looks at or takes chips."""
        with ExitStack() as held:
            with self._saying_where():
                held.enter_context(self._lock("guard", blocking=True))
            yield

    def try_take(self, chip_ids: Iterable[int]) -> tuple[BaseFileLock, ...] | None:
        """The locks of all these chips; None if one of them is held."""
        with ExitStack() as taken:
            locks = {chip_id: self._chip_lock(chip_id) for chip_id in chip_ids}
            if not all(self._try_enter(taken, lock) for lock in locks.values()):
                return None
            for chip_id in locks:
                self._write_record(chip_id)
            taken.pop_all()
            return tuple(locks.values())

    def read_holders(self, chip_ids: Iterable[int]) -> tuple[Holder, ...]:
        """The holders of those of the chips that are held."""
        held = (chip_id for chip_id in chip_ids if self._is_held(chip_id))
        return tuple(self._read_holder(chip_id) for chip_id in held)

    def _is_held(self, chip_id: int) -> bool:
        with ExitStack() as looking:
            return not self._try_enter(looking, self._chip_lock(chip_id))

    def _try_enter(self, stack: ExitStack, lock: BaseFileLock) -> bool:
        """Hold the lock until the stack ends; False if somebody else holds it."""
        with self._saying_where():
            try:
                stack.enter_context(lock)
            except Timeout:
                return False
        return True

    def _chip_lock(self, chip_id: int) -> BaseFileLock:
        return self._lock(_name_of(chip_id), blocking=False)

    def _lock(self, name: str, *, blocking: bool) -> BaseFileLock:
        return FileLock(
            self.directory / f"{name}.lock",
            mode=0o600,
            # A lease may be released by another thread than the one that took it.
            thread_local=False,
            blocking=blocking,
            # A file that only says by its presence that it is locked outlives a kill.
            fallback_to_soft=False,
            poll_interval=_POLL_SECONDS,
        )

    def _record_path(self, chip_id: int) -> Path:
        return self.directory / f"{_name_of(chip_id)}.json"

    def _write_record(self, chip_id: int) -> None:
        record = {
            "pid": os.getpid(),
            "command": shlex.join(sys.orig_argv),
            "user": _get_user_name(),
            "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        path = self._record_path(chip_id)
        with self._saying_where():
            # Read under the guard only, so nobody sees it half written. Overwriting or
            # renaming would wait for the disk, for each of up to 256 chips.
            path.unlink(missing_ok=True)
            path.write_text(json.dumps(record), encoding="utf-8")

    def _read_holder(self, chip_id: int) -> Holder:
        path = self._record_path(chip_id)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            return Holder(chip_id, **record)
        except (OSError, ValueError, TypeError) as error:
            raise DeviceError(
                f"Chip {chip_id} is held, but its record does not say by whom.",
                where=str(path),
                remedy="Wait until the program that uses the chip has ended.",
            ) from error

    @contextmanager
    def _saying_where(self) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            raise DeviceError(
                f"Devices cannot be locked here: {error}.",
                where=str(self.directory),
                remedy="Give Pod a directory that you may write to.",
            ) from error


def get_default_directory(system_name: str) -> Path:
    """Where this user's lock files of a system lie; another's directory is refused."""
    root = Path(tempfile.gettempdir()) / f"popple-{_get_user_key()}"
    if sys.platform != "win32" and _owner_of(root) not in (None, os.getuid()):
        raise DeviceError(
            "The directory for device locks belongs to another user.",
            where=str(root),
            remedy="Remove it, or give Pod another directory.",
        )
    return root / system_name


def _name_of(chip_id: int) -> str:
    return f"chip-{chip_id}"


def _owner_of(path: Path) -> int | None:
    """The user a path belongs to, if it exists; a link belongs to who made it."""
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return None


def _get_user_key() -> str:
    return getpass.getuser() if sys.platform == "win32" else str(os.getuid())


def _get_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return _get_user_key()
