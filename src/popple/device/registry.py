"""Who holds which chip: for each chip a lock file and a record, all in one directory.

In: chip ids. Out: locks of the chips, or the `Holder` of each chip in use. The lock
says whether a chip is held; a lock cannot say by whom, so the holder writes that down.
The record of a chip that is not locked is stale, and the next holder overwrites it.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from popple.device.activity import Activity, ActivityMeter, read_activity
from popple.device.state import (
    PRIVATE_FILE,
    SHARED_FILE,
    get_user_name,
    open_file,
    saying_where,
)
from popple.errors import DeviceError

# The guard is held for about a millisecond per chip, and processes wait their turn.
_POLL_SECONDS = 0.005
# Enough to recognise a program by; command lines may have megabytes.
_MAX_COMMAND = 2000
# A pod that has its description no more was removed while somebody waited for it.
POD_FILE = "pod.json"


@dataclass(frozen=True)
class Holder:
    """A process that holds a chip; `since` is a UTC time in ISO 8601.

    `activity` counts what it has run on all the chips that it attached to together.
    """

    chip_id: int
    pid: int
    command: str
    user: str
    since: str
    activity: Activity


class Registry:
    """The lock files and records of one machine.

    `try_take` and `read_holders` are for use inside `guard`, which keeps others from
    seeing a half-taken group of chips, or a chip as busy that is only being looked at.
    The files of a shared pod exist from its creation, in a directory that only its
    creator can change: other users open them and can put nothing in their place.
    """

    def __init__(
        self, directory: Path, *, is_shared: bool = False, is_pod: bool = False
    ) -> None:
        self.directory = directory
        self._is_shared = is_shared
        self._is_pod = is_pod

    @contextmanager
    def guard(self) -> Generator[None, None, None]:
        """Be the only one, in this or any process, who looks at or takes chips."""
        # Before, since locking would make the directory again, and after, since the
        # pod may be removed while we wait.
        self._check_exists()
        with ExitStack() as held:
            with saying_where(self.directory):
                held.enter_context(self._lock("guard", blocking=True))
            self._check_exists()
            yield

    def _check_exists(self) -> None:
        if self._is_pod and not (self.directory / POD_FILE).exists():
            raise DeviceError(
                "The pod was removed.",
                where=str(self.directory),
                remedy="Create it again with 'popple pod create'.",
            )

    def try_take(self, chip_ids: Iterable[int]) -> tuple[BaseFileLock, ...] | None:
        """The locks of all these chips; None if one of them is held."""
        with ExitStack() as taken:
            locks = {chip_id: self._chip_lock(chip_id) for chip_id in chip_ids}
            if not all(self._try_enter(taken, lock) for lock in locks.values()):
                return None
            record = _make_record(tuple(locks))
            for chip_id in locks:
                self._write_record(chip_id, record)
            taken.pop_all()
            return tuple(locks.values())

    def open_meter(self, chip_ids: Sequence[int], heat_seconds: float) -> ActivityMeter:
        """The counters of a lease on these chips: its first chip has the file."""
        with saying_where(self.directory):
            path = self._path(chip_ids[0], "activity")
            return ActivityMeter(path, self._creation_mode, heat_seconds)

    def read_holders(self, chip_ids: Iterable[int]) -> tuple[Holder, ...]:
        """The holders of those of the chips that are held."""
        held = (chip_id for chip_id in chip_ids if self._is_held(chip_id))
        return tuple(self._read_holder(chip_id) for chip_id in held)

    def _is_held(self, chip_id: int) -> bool:
        with ExitStack() as looking:
            return not self._try_enter(looking, self._chip_lock(chip_id))

    def _try_enter(self, stack: ExitStack, lock: BaseFileLock) -> bool:
        """Hold the lock until the stack ends; False if somebody else holds it."""
        with saying_where(self.directory):
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
            mode=SHARED_FILE if self._is_shared else PRIVATE_FILE,
            # A lease may be released by another thread than the one that took it.
            thread_local=False,
            blocking=blocking,
            # A file that only says by its presence that it is locked outlives a kill.
            fallback_to_soft=False,
            poll_interval=_POLL_SECONDS,
        )

    @property
    def _creation_mode(self) -> int | None:
        """None where files exist already and nobody but the creator may add any."""
        return None if self._is_shared else PRIVATE_FILE

    def _path(self, chip_id: int, suffix: str) -> Path:
        return self.directory / f"{_name_of(chip_id)}.{suffix}"

    def _write_record(self, chip_id: int, record: bytes) -> None:
        with saying_where(self.directory):
            # Read under the guard only, so nobody sees it half written. A file emptied
            # or renamed would wait for the disk, for each of up to 256 chips.
            path = self._path(chip_id, "json")
            with os.fdopen(open_file(path, self._creation_mode), "r+b") as file:
                file.write(record)
                file.truncate()

    def _read_holder(self, chip_id: int) -> Holder:
        path = self._path(chip_id, "json")
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            first = int(record.pop("chips")[0])
            activity = read_activity(self._path(first, "activity"))
            return Holder(chip_id, **record, activity=activity)
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise DeviceError(
                f"Chip {chip_id} is held, but its record does not say by whom.",
                where=str(path),
                remedy="Wait until the program that uses the chip has ended.",
            ) from error


def list_file_names(chip_ids: Iterable[int]) -> tuple[str, ...]:
    """The names of all files that a registry of these chips uses."""
    suffixes = ("lock", "json", "activity")
    names = (f"{_name_of(chip_id)}.{end}" for chip_id in chip_ids for end in suffixes)
    return ("guard.lock", *names)


def describe_process() -> str:
    """The command line of this process, cut to a length that can be shown."""
    return shlex.join(sys.orig_argv)[:_MAX_COMMAND]


def _make_record(chip_ids: Sequence[int]) -> bytes:
    record = {
        "pid": os.getpid(),
        "command": describe_process(),
        "user": get_user_name(),
        "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "chips": list(chip_ids),
    }
    return json.dumps(record).encode("utf-8")


def _name_of(chip_id: int) -> str:
    return f"chip-{chip_id}"
