"""The compiled form of the rounding: made once in a process, if there is a compiler."""

from __future__ import annotations

import ctypes
import functools
import logging
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

_LOG = logging.getLogger(__name__)
_SOURCE = Path(__file__).with_name("rounding.c")
_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
_COMPILERS = ("cc", "gcc", "clang")
_SECONDS = 60

Kernel = Callable[[int, int, int, int, int, int], None]
"""Addresses of float32 and float16 numbers, how many, counter, key, what is beyond."""


@functools.cache
def find_kernel() -> Kernel | None:
    """The kernel for this processor; None if it cannot be compiled here."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return None
    # The folder may go once the library is loaded.
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "rounding.so"
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(library)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
            function = ctypes.CDLL(str(library)).round_at_random
        except (OSError, subprocess.SubprocessError) as error:
            _LOG.debug("no compiled rounding: %s", error)
            return None
    address, word = ctypes.c_void_p, ctypes.c_uint32
    function.argtypes = [address, address, ctypes.c_int64, word, word, word]
    function.restype = None
    return function
