"""Frozen dataclasses that are made by the hundred thousand.

A frozen dataclass is made with a call of `object.__setattr__` for every field. Models
of many layers have a million steps, rows and costs, and making them that way is a
noticeable part of the time. A quick class is made by plain assignments, in an object of
a twin class that is open, which becomes one of the frozen class when it is complete:
that takes half as long. Both classes have slots, or Python could not turn one into the
other without giving the object a dict. Slots also take less memory.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

Made = TypeVar("Made")


def quick(cls: type[Made]) -> type[Made]:
    """A frozen dataclass with slots that is made at once, otherwise as it was."""
    twin = type(cls.__name__, (), {"__slots__": cls.__dict__["__slots__"]})
    given: list[Field[Any]] = list(fields(cls))  # pyright: ignore[reportArgumentType]
    known: dict[str, Any] = {"_MISSING": MISSING, "_Twin": twin}
    parameters, lines = ["cls"], ["self = _Twin()"]
    for each in given:
        name = each.name
        known[f"_of_{name}"] = each.default
        value, has_default = name, each.default is not MISSING
        if each.default_factory is not MISSING:
            known[f"_of_{name}"], has_default = MISSING, True
            known[f"_make_{name}"] = each.default_factory
            value = f"_make_{name}() if {name} is _MISSING else {name}"
        parameters.append(f"{name}=_of_{name}" if has_default else name)
        lines.append(f"self.{name} = {value}")
    lines.append("self.__class__ = cls")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    lines.append("return self")
    # As dataclasses do it: only code with the names written out is quick.
    body = "\n    ".join(lines)
    exec(f"def __new__({', '.join(parameters)}):\n    {body}", known)
    made = known["__new__"]
    made.__annotations__ = cls.__init__.__annotations__
    made.__qualname__ = f"{cls.__qualname__}.__new__"
    cls.__new__ = made
    del cls.__init__  # nothing is left for it to do
    cls.__reduce__ = _reduced  # pyright: ignore[reportAttributeAccessIssue]
    return cls


def _reduced(record: Made) -> tuple[type[Made], tuple[Any, ...]]:
    """How a record is copied and pickled: made once more, and checked."""
    return type(record), _values(record)


def replaced(record: Made, **changes: Any) -> Made:
    """A record of a quick class with some fields changed, as `dataclasses.replace`."""
    cls = type(record)
    names: tuple[str, ...] = cls.__match_args__  # pyright: ignore
    return cls(**{**{name: getattr(record, name) for name in names}, **changes})


def _values(record: object) -> tuple[Any, ...]:
    names: tuple[str, ...] = type(record).__match_args__  # pyright: ignore
    return tuple(getattr(record, name) for name in names)
