"""Lines of many processes as one text: tagged, kept in files, the last ones remembered.

A tag is Open MPI's: `[1,0]<stdout>: ` is job 1, instance 0.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

NUM_REMEMBERED = 20
"""Lines of an instance's errors that are shown again when it fails."""

_LARGEST_PART = 1 << 16


@dataclass(frozen=True)
class OutputRules:
    """What is shown of which instance, and whether it is kept in files.

    `only` is the one instance to show, None for all of them.
    """

    is_tagged: bool
    only: int | None = None
    directory: Path | None = None

    def tag(self, instance: int, stream: str) -> bytes:
        """What stands before a line."""
        return f"[1,{instance}]<{stream}>:".encode() if self.is_tagged else b""

    def shows(self, instance: int) -> bool:
        """Whether the user sees this instance."""
        return self.only is None or self.only == instance


class LinePrinter:
    """Writes whole lines of several threads to one terminal or file."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._turn = threading.Lock()

    def write(self, line: bytes) -> None:
        """Write one line, after whichever was begun before."""
        with self._turn:
            try:
                self._target.write(line)
                self._target.flush()
            except BrokenPipeError:
                # The reader (`poprun ... | head`) has seen enough; the job goes on.
                return


def copy_lines(
    source: BinaryIO,
    tag: bytes,
    show: Callable[[bytes], None] | None,
    last: collections.deque[bytes],
    file: BinaryIO | None = None,
) -> None:
    """Copy a stream line by line until it ends; `last` keeps the newest lines."""
    with source, file or nullcontext():
        # A progress bar may write for hours without a line end: parts of lines are
        # shown, too, once they are long.
        while line := source.readline(_LARGEST_PART):
            last.append(line)
            if show is not None:
                show(tag + line if line.endswith(b"\n") else tag + line + b"\n")
            if file is not None:
                file.write(line)
                file.flush()
