"""Executables: programs that were traced once and run later, also elsewhere.

A file is a zip archive of

    header.json      format, version, and what feeds each placeholder of the program
    signature.pb     the inputs and outputs, as programs ask for them
    program.pb       the program, a GraphDef with an operation named "program"
    values/N.npy     values of variables and constants

Nothing in it is code of Python's; it is written beside its place and then moved there.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.plugin.poplar.driver import poplar_executable_pb2

from popple.errors import UsageError
from popple.files import replace_file
from tensorflow_ipu._types import Message

_FORMAT = "popple executable"
_VERSION = 1
PROGRAM = "program"


@dataclass(frozen=True)
class Feed:
    """A queue that the program reads or writes: its placeholder and its elements."""

    placeholder: str
    types: Sequence[str]
    shapes: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Value:
    """A tensor or variable that the program starts with.

    It is input number `argument`, or, where that is negative, stored with the program.
    """

    placeholder: str
    name: str
    dtype: str
    shape: Sequence[int]
    is_variable: bool
    argument: int = -1


@dataclass(frozen=True)
class Executable:
    """A program, what it is fed with, and the values that are stored with it."""

    program: bytes
    infeeds: Sequence[Feed] = ()
    outfeeds: Sequence[Feed] = ()
    starts: Sequence[Value] = ()
    outputs: Sequence[Value] = ()
    values: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def inputs(self) -> list[Value]:
        """What must be given when the program is started."""
        wanted = [value for value in self.starts if value.argument >= 0]
        return sorted(wanted, key=lambda value: value.argument)

    def signature(self) -> Any:
        """The inputs and outputs as the message that programs expect."""
        message = poplar_executable_pb2.PoplarExecutableProto(replication_factor=1)
        signature = message.embedded_runtime_config.signature
        for value in self.inputs:
            _describe(signature.inputs.add(argument=value.argument), value)
        for value in self.outputs:
            _describe(signature.outputs.add(), value)
        for kind, feeds in (("input", self.infeeds), ("output", self.outfeeds)):
            described = getattr(signature, f"streamed_{kind}s")
            for value in _streamed(feeds):
                _describe(described.add(), value)
        return message

    def write(self, path: str) -> None:
        """Write the file; it is there completely, or not at all."""
        place = Path(path)
        if not place.parent.is_dir():
            raise FileNotFoundError(
                f"Failed to open file for writing: {place.parent} does not exist."
            )
        with replace_file(place) as draft, zipfile.ZipFile(draft, "w") as archive:
            self._fill(archive)

    def _fill(self, archive: zipfile.ZipFile) -> None:
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "infeeds": [asdict(feed) for feed in self.infeeds],
            "outfeeds": [asdict(feed) for feed in self.outfeeds],
            "starts": [asdict(value) for value in self.starts],
            "outputs": [asdict(value) for value in self.outputs],
            "values": list(self.values),
        }
        archive.writestr("header.json", json.dumps(header, indent=1))
        archive.writestr("signature.pb", self.signature().SerializeToString())
        archive.writestr("program.pb", self.program)
        for index, array in enumerate(self.values.values()):
            content = io.BytesIO()
            # No pickles: a file that is exchanged must not be able to run code.
            np.save(content, array, allow_pickle=False)
            archive.writestr(f"values/{index}.npy", content.getvalue())


def read(path: str) -> Executable:
    """Read a file that `Executable.write` has written."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, path)
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError) as error:
        raise UsageError(
            f"This is no executable that can be read ({error}).",
            where=str(path),
            remedy="Write it again, with application_compile_op or serving.",
        ) from error


def _read(archive: zipfile.ZipFile, path: str) -> Executable:
    header = json.loads(archive.read("header.json"))
    if (header["format"], header["version"]) != (_FORMAT, _VERSION):
        raise UsageError(
            f"This is a {header['format']!r} of version {header['version']}, not"
            f" version {_VERSION}.",
            where=str(path),
            remedy="Write it again with this release.",
        )
    arrays = {
        name: np.load(
            io.BytesIO(archive.read(f"values/{index}.npy")), allow_pickle=False
        )
        for index, name in enumerate(header["values"])
    }
    return Executable(
        program=archive.read("program.pb"),
        infeeds=[Feed(**feed) for feed in header["infeeds"]],
        outfeeds=[Feed(**feed) for feed in header["outfeeds"]],
        starts=[Value(**value) for value in header["starts"]],
        outputs=[Value(**value) for value in header["outputs"]],
        values=arrays,
    )


def _streamed(feeds: Sequence[Feed]) -> list[Value]:
    """The tensors of feeds, one after another."""
    return [
        Value(feed.placeholder, f"{feed.placeholder}.{index}", dtype, shape, False)
        for feed in feeds
        for index, (dtype, shape) in enumerate(
            zip(feed.types, feed.shapes, strict=True)
        )
    ]


# Numbers of element types in XLA's messages.
_ELEMENT_TYPES = {
    "bool": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "uint8": 6,
    "uint16": 7,
    "uint32": 8,
    "uint64": 9,
    "float16": 10,
    "float32": 11,
    "float64": 12,
    "bfloat16": 16,
}
_TYPES = {number: tf.as_dtype(name) for name, number in _ELEMENT_TYPES.items()}


def _describe(message: Message, value: Value) -> None:
    message.name = value.name
    message.handle = value.placeholder
    message.shape.element_type = _ELEMENT_TYPES[value.dtype]
    message.shape.dimensions.extend(value.shape)


def described_type(message: Message) -> tf.DType:
    """The TensorFlow type of an input or output in a signature."""
    return _TYPES[message.shape.element_type]
