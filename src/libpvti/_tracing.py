"""Whether this process is traced, and where to.

A session begins with the first thing that is traced. A forked child begins its own,
with a file of its own; what the parent had not written yet stays the parent's.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from libpvti._options import Options, read_options

if TYPE_CHECKING:
    from libpvti._session import Session

__all__ = ["TRACING", "Tracing", "closeTrace", "getCurrentTraceFilename"]


class Tracing:
    """The switch, and the session once there is one."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.is_on = options.is_enabled
        self._session: Session | None = None
        self._lock = threading.Lock()

    @property
    def session(self) -> Session:
        """The session; begins one if need be."""
        if self._session is None:
            from libpvti._session import Session

            with self._lock:
                if self._session is None:
                    self._session = Session(self.options)
        return self._session

    def close(self) -> None:
        """End the trace for good."""
        self.is_on = False
        if self._session is not None:
            self._session.close()

    def forget_parent(self) -> None:
        """In a forked child: leave the parent's session, and its lock, alone."""
        self._session = None
        self._lock = threading.Lock()


TRACING = Tracing(read_options(os.environ.get("PVTI_OPTIONS")))

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TRACING.forget_parent)


def getCurrentTraceFilename() -> str:
    """The file this process is traced into, empty if it is not traced."""
    return str(TRACING.session.path) if TRACING.is_on else ""


def closeTrace() -> None:
    """Write what is left and end the trace of this process."""
    TRACING.close()
