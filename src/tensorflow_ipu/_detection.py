"""Detects whether the running program is one for the IPU.

In: the environment, and the source of the files that lead to an import. Out: one yes or
no, which `_finder` asks for before it changes what a program gets: a program that never
touches the IPU keeps the installed Keras.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

from tensorflow_ipu import SWITCH

# An import statement that names the IPU, also over several lines in parentheses.
IPU_IMPORT = re.compile(
    r"^[ \t]*(?:from|import)[ \t][^\n#(]*(?:\([^)]*)?"
    r"\b(?:ipu|ipu_tensorflow_addons|plugin\.poplar)\b",
    re.MULTILINE,
)

# A string that is the name of a device, also one that is put together.
IPU_DEVICE = re.compile(r"^[^\n#]*[\"'](?:/device:|/)?IPU:[\d{%\"']", re.MULTILINE)

MACHINERY = "<frozen importlib._bootstrap>"  # of import statements

OURS = os.path.dirname(__file__) + os.sep

IPU_MODULE = re.compile(r"(tensorflow\.python|tensorflow\.keras|keras)\.ipu\b")


@dataclass
class IpuDetection:
    """What is known about the running program; it only ever becomes one for the IPU."""

    is_for_ipu: bool = False
    read: set[str] = field(default_factory=set[str])

    def examine(self) -> bool:
        """Whether it is one for the IPU, as far as can be seen at this import."""
        if not self.is_for_ipu:
            self.is_for_ipu = os.environ.get(SWITCH) == "on" or self._says_so()
        return self.is_for_ipu

    def _says_so(self) -> bool:
        files = [*files_that_import(), *main_file()]
        texts = [*map(self._unread_text, files), command_text()]
        names = modules_being_imported()
        return any(map(IPU_MODULE.match, names)) or any(map(speaks_of_ipu, texts))

    def _unread_text(self, name: str) -> str:
        """The text of a file (or notebook cell) that was not looked at before."""
        if name in self.read:
            return ""
        self.read.add(name)
        return readable_text(name)


def speaks_of_ipu(text: str) -> bool:
    """Whether some source imports something of the IPU, or names one."""
    return bool(IPU_IMPORT.search(text) or IPU_DEVICE.search(text))


def frames_that_import() -> Iterator[FrameType]:
    """The calls that led to this import, the nearest first."""
    # Not `inspect.stack`, which reads the source of every frame.
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def files_that_import() -> list[str]:
    """The files whose code led to this import; ours speak of the IPU anyway."""
    names = [frame.f_code.co_filename for frame in frames_that_import()]
    return [name for name in names if not name.startswith(OURS)]


def modules_being_imported() -> list[str]:
    """The modules that are waiting for this import: `keras.ipu` first needs `keras`."""
    frames = (f for f in frames_that_import() if f.f_code.co_filename == MACHINERY)
    return [str(frame.f_locals.get("name", "")) for frame in frames]


def is_imported_by_program() -> bool:
    """Whether an import statement asks, in a file that speaks of the IPU itself."""
    skipped = (OURS, MACHINERY)
    frames = (f.f_code.co_filename for f in frames_that_import())
    asking = next((name for name in frames if not name.startswith(skipped)), "")
    text = command_text() if asking == "<string>" else readable_text(asking)
    return speaks_of_ipu(text)


def readable_text(name: str) -> str:
    """The text of a file, or of a notebook's cell."""
    return "".join(linecache.getlines(name))


def main_file() -> list[str]:
    """The main script: the frames of a thread do not lead to it."""
    name = getattr(sys.modules.get("__main__"), "__file__", None)
    return [name] if name else []


def command_text() -> str:
    """The program of `python -c`, each statement on a line of its own."""
    words = sys.orig_argv
    after = words.index("-c") + 1 if "-c" in words else len(words)
    return words[after].replace(";", "\n") if after < len(words) else ""


DETECTION = IpuDetection()
