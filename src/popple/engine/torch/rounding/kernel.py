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

import torch

_LOG = logging.getLogger(__name__)
_SOURCE = Path(__file__).with_name("rounding.c")
_FLAGS = ("-O3", "-march=native", "-fPIC")
_COMPILERS = ("cc", "gcc", "clang")
_SECONDS = 60

Kernel = Callable[[int, int, int, int, int, bool, int], None]
"""Addresses of float32 and float16 numbers, how many, counter, key, whether what is too
large becomes NaN, and how many threads share the work."""


@functools.cache
def find_kernel() -> Kernel | None:
    """The kernel for this processor; None if it cannot be compiled here."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return None
    # The folder may go once the library is loaded.
    with tempfile.TemporaryDirectory() as folder:
        try:
            function = ctypes.CDLL(_compile(compiler, Path(folder))).round_at_random
        except (OSError, subprocess.SubprocessError) as error:
            _LOG.debug("no compiled rounding: %s", error)
            return None
    address, word = ctypes.c_void_p, ctypes.c_uint32
    function.argtypes = [
        *(address, address, ctypes.c_int64, word, word),
        *(ctypes.c_int, ctypes.c_int),
    ]
    function.restype = None
    return function


def _compile(compiler: str, folder: Path) -> str:
    """The path of a library made of the source."""
    # Linked with the threads that torch has, by name: others would wait for a core
    # while torch's keep theirs for the next kernel.
    threads = sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*"))[:1]
    flags = (*_FLAGS, "-fopenmp") if threads else _FLAGS
    made, library = str(folder / "rounding.o"), str(folder / "rounding.so")
    for command in (
        [compiler, *flags, "-c", str(_SOURCE), "-o", made],
        [compiler, "-shared", made, *map(str, threads), "-o", library],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
    return library
