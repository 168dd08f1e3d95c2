"""Exclusive locks on open files, by whatever the operating system offers.

In: a file descriptor. Out: the lock, or not. The system itself drops a lock when the
last process that has the file open dies, so nothing is left behind by a crash.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import msvcrt
    import os

    # Nobody else can read locked bytes here, so lock one far behind the text.
    _LOCKED_BYTE = 1 << 30

    def try_lock(descriptor: int) -> bool:
        """Take the lock, or return False if someone holds it."""
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def wait_for_lock(descriptor: int) -> None:
        """Take the lock as soon as nobody holds it."""
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)

    def unlock(descriptor: int) -> None:
        """Give the lock back."""
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Take the lock, or return False if someone holds it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait_for_lock(descriptor: int) -> None:
        """Take the lock as soon as nobody holds it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def unlock(descriptor: int) -> None:
        """Give the lock back, also for forked processes that have the file open."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
