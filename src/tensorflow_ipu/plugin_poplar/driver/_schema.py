"""Protobuf files made from tables instead of by a compiler.

In: the name of a file and its declarations as text, one per line:

    enum Colour                         an enum: its values count from 0, on any
      RED GREEN                         number of lines
    message Box                         a message, and its fields
      side int64 1
      labels string* 2                  a list
      Lid.colour Colour 1               a field of a message inside the message
      lid .Lid 3                        that message: the dot stands for the owner
      size|volume double 4              one of the members of the oneof `size`

Out: a `FileDescriptor` in protobuf's pool, from which `declare` makes the classes and
constants of a module, as a generated `_pb2` module has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.internal import builder

PACKAGE = "xla.poplarplugin"
_FOLDER = "tensorflow/compiler/plugin/poplar/driver/"
_SCALARS = ("double", "int64", "int32", "uint32", "bool", "string", "bytes")

_Field = descriptor_pb2.FieldDescriptorProto


def declare(
    module: dict[str, Any],
    name: str,
    text: str,
    *,
    imports: Sequence[Any] = (),
    package: str = PACKAGE,
) -> None:
    """Fill a `_pb2` module (its globals) with what `text` declares.

    `imports` are the `_pb2` modules whose messages and enums the text refers to.
    """
    files = [imported.DESCRIPTOR for imported in imports]
    file = _make_file(_FOLDER + name, package, text, files)
    module["DESCRIPTOR"] = descriptor_pool.Default().AddSerializedFile(
        file.SerializeToString()
    )
    builder.BuildMessageAndEnumDescriptors(module["DESCRIPTOR"], module)
    builder.BuildTopDescriptorsAndMessages(
        module["DESCRIPTOR"], module["__name__"], module
    )


def _make_file(
    name: str, package: str, text: str, imports: Sequence[Any]
) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name=name, package=package, syntax="proto3"
    )
    file.dependency.extend(imported.name for imported in imports)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    foreign = dict(_names_in(imports))
    for head, body in _declarations(lines):
        kind, _, rest = head.partition(" ")
        if kind == "enum":
            _add_enum(file, rest, " ".join(body).split())
        else:
            _add_message(file, rest, body, foreign)
    return file


def _names_in(imports: Sequence[Any]) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Short name -> full name, and whether it is an enum, of what imports declare."""
    for imported in imports:
        for short, found in imported.message_types_by_name.items():
            yield short, (f".{found.full_name}", False)
        for short, found in imported.enum_types_by_name.items():
            yield short, (f".{found.full_name}", True)


def _declarations(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each enum or message, with the lines that belong to it."""
    head, body = "", list[str]()
    for line in lines:
        if not line.startswith(("enum ", "message ")):
            body.append(line)
            continue
        if head:
            yield head, body
        head, body = line, []
    if head:
        yield head, body


def _add_enum(
    file: descriptor_pb2.FileDescriptorProto, path: str, values: Sequence[str]
) -> None:
    *owners, name = path.split(".")
    owner = _message_of(file, owners) if owners else file
    enum = owner.enum_type.add(name=name)
    for number, value in enumerate(values):
        enum.value.add(name=value, number=number)


def _message_of(
    file: descriptor_pb2.FileDescriptorProto, path: Sequence[str]
) -> descriptor_pb2.DescriptorProto:
    """The message of that path, made on the way if it is not there yet."""
    message: Any = None
    children: Any = file.message_type
    for name in path:
        found = next((child for child in children if child.name == name), None)
        message = found if found is not None else children.add(name=name)
        children = message.nested_type
    return message


def _add_message(
    file: descriptor_pb2.FileDescriptorProto,
    name: str,
    lines: Sequence[str],
    foreign: dict[str, tuple[str, bool]],
) -> None:
    _message_of(file, [name])
    for line in lines:
        path, kind, number = line.split()
        *owners, label = path.split(".")
        message = _message_of(file, [name, *owners])
        oneof, _, field_name = label.rpartition("|")
        field = message.field.add(name=field_name, number=int(number))
        if kind.startswith("."):
            kind = ".".join([name, *owners]) + kind
        _set_kind(field, kind, file, foreign)
        if oneof:
            field.oneof_index = _oneof_index(message, oneof)


def _set_kind(
    field: descriptor_pb2.FieldDescriptorProto,
    kind: str,
    file: descriptor_pb2.FileDescriptorProto,
    foreign: dict[str, tuple[str, bool]],
) -> None:
    is_list = kind.endswith("*")
    field.label = _Field.LABEL_REPEATED if is_list else _Field.LABEL_OPTIONAL
    kind = kind.rstrip("*")
    if kind in _SCALARS:
        field.type = getattr(_Field, f"TYPE_{kind.upper()}")
        return
    full_name, is_enum = foreign.get(kind) or _local(file, kind)
    field.type_name = full_name
    field.type = _Field.TYPE_ENUM if is_enum else _Field.TYPE_MESSAGE


def _local(file: descriptor_pb2.FileDescriptorProto, kind: str) -> tuple[str, bool]:
    """Full name of an enum or message of this file, and whether it is an enum."""
    *owners, name = kind.split(".")
    owner = _message_of(file, owners) if owners else file
    is_enum = any(enum.name == name for enum in owner.enum_type)
    return f".{file.package}.{kind}", is_enum


def _oneof_index(message: descriptor_pb2.DescriptorProto, name: str) -> int:
    names = [oneof.name for oneof in message.oneof_decl]
    if name not in names:
        message.oneof_decl.add(name=name)
        return len(names)
    return names.index(name)
