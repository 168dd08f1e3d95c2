"""From the attributes of a configuration to the fields of `IpuOptions`, by a table."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from tensorflow_ipu._types import Message

from .tree import _ConfigBase


class _Category(_ConfigBase):
    """A configuration whose options are fields of the protobuf message.

    `_fields` maps each option to the dotted name of its field; "not " before it says
    that the field means the opposite. `_check` raises if options contradict each other.
    """

    _fields: Mapping[str, str] = {}

    def _check(self) -> None:
        pass

    def _to_protobuf(self, pb: Message) -> None:
        self._check()
        for name, field in self._fields.items():
            value = getattr(self, name)
            negated = field.startswith("not ")
            write_field(pb, field.removeprefix("not "), not value if negated else value)
        super()._to_protobuf(pb)


def write_field(pb: Message, field: str, value: Any) -> None:
    """Set the field of that dotted name; a dictionary becomes a list of options."""
    *path, last = field.split(".")
    for part in path:
        pb = getattr(pb, part)
    if isinstance(value, Mapping):
        add_options(getattr(pb, last), value)
    else:
        setattr(pb, last, value.value if isinstance(value, enum.Enum) else value)


def read_field(pb: Message, field: str) -> Any:
    """The value of the field of that dotted name; options of Poplar as a list."""
    for part in field.split("."):
        pb = getattr(pb, part)
    return pb


def add_options(field: Any, options: Mapping[str, str]) -> None:
    """Add options of Poplar, each a name and a value, to a field of the message."""
    for name, value in options.items():
        field.add(option=name, value=value)
