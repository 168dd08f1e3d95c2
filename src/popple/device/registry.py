"""Who holds which chip: one lock file per chip in one directory.

In: chip ids. Out: locked file descriptors, or the `Holder` of each chip in use. A lock
file is held if it is locked; its text says by whom, and is stale if it is not.
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

from popple.device.locks import try_lock, unlock, wait_for_lock
from popple.errors import DeviceError


@dataclass(frozen=True)
class Holder:
    """A process that holds a chip; `since` is a UTC time in ISO 8601."""

    chip_id: int
    pid: int
    command: str
    user: str
    since: str


class Registry:
    """The lock files of one pod.

    `try_take` and `read_holders` are for use inside `guard`, which keeps others from
    seeing a half-taken group of chips, or a chip as busy that is only being looked at.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def guard(self) -> Generator[None, None, None]:
        """Be the only one, in this or any process, who looks at or takes chips."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._make_directory_error(error) from error
        descriptor = self._open("guard")
        try:
            wait_for_lock(descriptor)
            yield
        finally:
            # Closing is not enough: a process forked meanwhile has the file open too.
            unlock(descriptor)
            os.close(descriptor)

    def try_take(self, chip_ids: Iterable[int]) -> tuple[int, ...] | None:
        """Descriptors of the locked files of all these chips; None if one is held."""
        with ExitStack() as opened:
            descriptors: list[int] = []
            for chip_id in chip_ids:
                descriptor = self._open(_name_of(chip_id))
                opened.callback(os.close, descriptor)
                if not try_lock(descriptor):
                    return None
                descriptors.append(descriptor)
            for descriptor in descriptors:
                _write_record(descriptor)
            opened.pop_all()
            return tuple(descriptors)

    def read_holders(self, chip_ids: Iterable[int]) -> tuple[Holder, ...]:
        """The holders of those of the chips that are held."""
        held = (chip_id for chip_id in chip_ids if self._is_held(chip_id))
        return tuple(self._read_holder(chip_id) for chip_id in held)

    def _is_held(self, chip_id: int) -> bool:
        descriptor = self._open(_name_of(chip_id))
        try:
            if not try_lock(descriptor):
                return True
            unlock(descriptor)
            return False
        finally:
            os.close(descriptor)

    def _read_holder(self, chip_id: int) -> Holder:
        path = self.directory / _name_of(chip_id)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            return Holder(chip_id, **record)
        except (OSError, ValueError, TypeError) as error:
            raise DeviceError(
                f"Chip {chip_id} is held, but its lock file does not say by whom.",
                where=str(path),
                remedy="Remove the file once no program uses the chip.",
            ) from error

    def _open(self, name: str) -> int:
        try:
            return os.open(self.directory / name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._make_directory_error(error) from error

    def _make_directory_error(self, error: OSError) -> DeviceError:
        return DeviceError(
            f"Devices cannot be locked here: {error}.",
            where=str(self.directory),
            remedy="Give Pod a directory that you may write to.",
        )


def get_default_directory(system_name: str) -> Path:
    """Where this user's lock files of a system lie; another's directory is refused."""
    root = Path(tempfile.gettempdir()) / f"popple-{_get_user_key()}"
    if sys.platform != "win32" and root.exists() and root.stat().st_uid != os.getuid():
        raise DeviceError(
            "The directory for device locks belongs to another user.",
            where=str(root),
            remedy="Remove it, or give Pod another directory.",
        )
    return root / system_name


def _name_of(chip_id: int) -> str:
    return f"chip-{chip_id}.lock"


def _write_record(descriptor: int) -> None:
    """Overwrite the text in place: replacing the file would lose the lock on it."""
    record = {
        "pid": os.getpid(),
        "command": shlex.join(sys.orig_argv),
        "user": _get_user_name(),
        "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    data = json.dumps(record).encode()
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, data)
    os.ftruncate(descriptor, len(data))


def _get_user_key() -> str:
    return getpass.getuser() if sys.platform == "win32" else str(os.getuid())


def _get_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return _get_user_key()
