"""Executables: programs that were traced once and run later, also elsewhere.

A file is an archive (`popple.session.archive`) of

    header.json      what feeds each placeholder of the program
    signature.pb     the inputs and outputs, as programs ask for them
    program.pb       the program, a GraphDef with an operation named "program"
    values/N.npy     values of variables and constants

All of it is data, with checksums, and `safe_programs` says which operations the program
may have; the file is written beside its place and then moved there.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow.compiler.plugin.poplar.driver import poplar_executable_pb2

from popple.errors import DamagedFileError, UsageError
from popple.session.archive import Archive, read_archive, render_json, write_archive
from tensorflow_ipu._types import Message

from .safe_programs import parse_program

_KIND = "tensorflow program"
_VERSION = 2
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
        header = {
            "infeeds": [asdict(feed) for feed in self.infeeds],
            "outfeeds": [asdict(feed) for feed in self.outfeeds],
            "starts": [asdict(value) for value in self.starts],
            "outputs": [asdict(value) for value in self.outputs],
            "values": list(self.values),
        }
        saved = map(_saved, self.values.values())
        parts = {
            "header.json": render_json(header),
            "signature.pb": self.signature().SerializeToString(),
            "program.pb": self.program,
            **{f"values/{index}.npy": data for index, data in enumerate(saved)},
        }
        write_archive(place, parts, {"kind": _KIND, "version": _VERSION})


def read(path: str) -> Executable:
    """Read a file that `Executable.write` has written."""
    try:
        archive = read_archive(path)
        _check_kind(archive)
        return _read(archive)
    except (DamagedFileError, ValueError, TypeError, KeyError) as error:
        why = error.why if isinstance(error, DamagedFileError) else str(error)
        raise UsageError(
            f"This is no executable that can be read: {why}.",
            where=str(path),
            remedy="Write it again, with application_compile_op or serving.",
        ) from error


def _check_kind(archive: Archive) -> None:
    found = archive.description
    if found.get("kind") != _KIND:
        raise ValueError("it is none of TensorFlow's")
    if found.get("version") != _VERSION:
        raise ValueError(f"it is of version {found.get('version')}, not {_VERSION}")


def _read(archive: Archive) -> Executable:
    header = archive.json("header.json")
    program = archive.part("program.pb")
    # Before anything is built of it: files come from anywhere.
    parse_program(program)
    return Executable(
        program=program,
        infeeds=[_checked_feed(**feed) for feed in header["infeeds"]],
        outfeeds=[_checked_feed(**feed) for feed in header["outfeeds"]],
        starts=[_checked_value(**value) for value in header["starts"]],
        outputs=[_checked_value(**value) for value in header["outputs"]],
        values={
            name: _loaded(archive.part(f"values/{index}.npy"))
            for index, name in enumerate(header["values"])
        },
    )


def _checked_feed(**fields: Any) -> Feed:
    feed = Feed(**fields)
    for dtype, shape in zip(feed.types, feed.shapes, strict=True):
        _check_tensor(dtype, shape)
    return feed


def _checked_value(**fields: Any) -> Value:
    value = Value(**fields)
    _check_tensor(value.dtype, value.shape)
    return value


def _check_tensor(dtype: str, shape: Sequence[int]) -> None:
    """ValueError for types and shapes that no program has."""
    if dtype not in _ELEMENT_TYPES:
        raise ValueError(f"{dtype!r} is no type")
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError(f"{shape!r} is no shape")


def _saved(array: Any) -> bytes:
    content = io.BytesIO()
    # No pickles: a file that is exchanged must not be able to run code.
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def _loaded(data: bytes) -> Any:
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    # A header that promises more than there is, or is no header.
    except (EOFError, MemoryError, SyntaxError) as error:
        raise ValueError("one of its values is no array") from error


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
