"""Named NumPy arrays in one file: a zip archive without pickles, replaced whole."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow.python.platform import tf_logging as logging

from popple.files import replace_file

from .._errors import error

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    SyntaxError,
    TypeError,
)

__all__ = ["ElementWriter", "as_text", "check_described", "read", "write"]


def as_text(name: str | bytes) -> str:
    """The name as a string."""
    return name.decode() if isinstance(name, bytes) else name


def write(path: str, arrays: Mapping[str, Any], print_stats: bool) -> None:
    """Write all arrays; the file appears when it is complete."""
    with replace_file(path) as draft, zipfile.ZipFile(draft, "w") as archive:
        for name, array in arrays.items():
            _add(archive, name, array)
    if print_stats:
        logging.info(f"Wrote {len(arrays)} tensors to {path}")


def read(
    paths: Sequence[str], names: Sequence[str], strict: bool, print_stats: bool
) -> list[Any]:
    """The arrays of those names, from whichever of the files has them."""
    found: dict[str, Any] = {}
    for path in paths:
        found.update(_load(path))
    missing = [name for name in names if name not in found]
    extra = sorted(set(found) - set(names)) if strict else []
    if missing or extra:
        raise error(
            tf.errors.InvalidArgumentError,
            f"The files {list(paths)} do not fit the variables: they lack {missing} "
            f"and have {extra} too many.",
        )
    if print_stats:
        logging.info(f"Read {len(names)} tensors from {len(paths)} file(s)")
    return [found[name] for name in names]


def _load(path: str) -> dict[str, Any]:
    try:
        # Opened here: NumPy leaves a file open that it cannot read.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except FileNotFoundError:
        raise
    # What a file that was cut short or changed makes NumPy and zipfile raise.
    except (*_DAMAGE, OSError, ValueError) as damage:
        raise error(
            tf.errors.DataLossError,
            f"{path} is damaged, or no file of tensors: {damage}. Write it again.",
        ) from damage


def check_described(metadata: str, shapes: Sequence[Any]) -> None:
    """Raise if a program's description has parameters of other shapes than these."""
    described = json.loads(Path(metadata).read_text(encoding="utf-8"))
    inputs = (i for i in described.get("inputs", ()) if i.get("type") == "parameter")
    wanted = sorted(tuple(i["shape"]["shape"]) for i in inputs)
    given = sorted(tuple(tf.TensorShape(shape).as_list()) for shape in shapes)
    if wanted != given:
        raise error(
            tf.errors.InvalidArgumentError,
            f"{metadata} describes parameters of the shapes {wanted}, but those of the "
            f"variables are {given}.",
        )


class ElementWriter:
    """Writes the elements of a data set one by one, as the data set yields them.

    `write` is called with the numbers 0, 1, ... and then `finish`, any number of times.
    """

    def __init__(
        self, path: str, feed_name: str, num_elements: int, print_stats: bool
    ) -> None:
        self._path = path
        self._feed_name = as_text(feed_name)
        self._num_elements = num_elements
        self._print_stats = print_stats
        self._archive: zipfile.ZipFile | None = None
        self._open = ExitStack()  # closes the archive, then lets the file appear

    def write(self, index: int, *components: Any) -> np.int64:
        """Add an element; returns the number of elements so far."""
        if index == 0 or self._archive is None:
            self._abandon()
            draft = self._open.enter_context(replace_file(self._path))
            self._archive = self._open.enter_context(zipfile.ZipFile(draft, "w"))
        for number, component in enumerate(components):
            _add(self._archive, f"{self._feed_name}.{number}/{index}", component)
        return np.int64(index + 1)

    def finish(self, count: Any) -> np.int64:
        """Let the file appear, if all elements were there."""
        self._archive = None
        with self._open:
            if count < self._num_elements:
                raise error(
                    tf.errors.OutOfRangeError,
                    f"The data set has only {count} elements, not "
                    f"{self._num_elements}.",
                )
        if self._print_stats:
            logging.info(f"Wrote {count} elements to {self._path}")
        return np.int64(count)

    def _abandon(self) -> None:
        """Remove what an earlier run wrote and did not finish."""
        with suppress(_Unfinished), self._open:
            raise _Unfinished


class _Unfinished(Exception):
    """Elements begin anew before the earlier ones were finished."""


def _add(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
