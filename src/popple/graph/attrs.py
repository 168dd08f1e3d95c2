"""Attributes of ops: their definitions (AttrDef), types, defaults and checks (Schema).

An `OpDef` lists the attributes of its ops as `AttrDef`s, its `Schema`. What an op is
given is held against that list when the op is made: a mistyped name or a number in
place of a tuple fails where it is written and not in a plan. What is only advice to the
planner is no attribute but a note (`notes.py`).

An attribute is there because a rule reads it, or because it tells apart ops that run
different code though their types are equal: such ops must not be outlined into one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from popple.errors import GraphError, suggest

Attr = bool | int | str | tuple[int, ...] | tuple[str, ...]
"""The value of an attribute."""

_Many = Iterable[Any]


class AttrType(enum.Enum):
    """The type of an attribute; the text is what errors call it."""

    INT = "an integer"
    INTS = "a tuple of integers"
    BOOL = "True or False"
    TEXT = "a text"
    TEXTS = "a tuple of texts"

    def accepts(self, value: Any) -> bool:
        """Whether a value has this type."""
        if self is AttrType.INTS:
            return isinstance(value, tuple) and all(map(_is_int, cast(_Many, value)))
        if self is AttrType.TEXTS:
            texts = cast(_Many, value)
            return isinstance(value, tuple) and all(isinstance(t, str) for t in texts)
        if self is AttrType.INT:
            return _is_int(value)
        return isinstance(value, bool if self is AttrType.BOOL else str)


_TUPLES = (AttrType.INTS, AttrType.TEXTS)


def _is_int(value: Any) -> bool:
    # Exactly int: True is an int for Python, and a number of NumPy prints differently.
    return type(value) is int


@dataclass(frozen=True)
class AttrDef:
    """One attribute of a kind of op.

    With a `default` it may be left out and then has that value. If it `is_optional` it
    may be left out and stays away; `doc` says what that means. A text is one of
    `choices`, if there are any.
    """

    name: str
    type: AttrType
    doc: str
    default: Attr | None = None
    is_optional: bool = False
    choices: tuple[str, ...] = ()

    @property
    def is_mandatory(self) -> bool:
        """Whether every op of the kind must be given the attribute."""
        return self.default is None and not self.is_optional

    def complaint(self, value: object) -> str:
        """What is wrong with a value of the attribute, or an empty string."""
        if not self.type.accepts(value):
            return f"must be {self.type.value}, not {value!r}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {value!r}"
        return ""


def integer(
    name: str, doc: str, *, default: int | None = None, is_optional: bool = False
) -> AttrDef:
    """An attribute that is one integer."""
    return AttrDef(name, AttrType.INT, doc, default, is_optional)


def integers(name: str, doc: str, *, is_optional: bool = False) -> AttrDef:
    """An attribute that is a tuple of integers."""
    return AttrDef(name, AttrType.INTS, doc, is_optional=is_optional)


def flag(name: str, doc: str, *, default: bool) -> AttrDef:
    """An attribute that holds or does not."""
    return AttrDef(name, AttrType.BOOL, doc, default)


def text(name: str, doc: str, *, choices: tuple[str, ...] = ()) -> AttrDef:
    """An attribute that is a text."""
    return AttrDef(name, AttrType.TEXT, doc, choices=choices)


def texts(name: str, doc: str) -> AttrDef:
    """An attribute that is a tuple of texts."""
    return AttrDef(name, AttrType.TEXTS, doc)


class Schema:
    """The attributes that ops of one kind may have, and the check of what one has."""

    def __init__(self, attrs: Iterable[AttrDef]) -> None:
        self._attrs = {known.name: known for known in attrs}
        # Worked out once: every op of a kind, and every copy that a pass makes, is
        # checked.
        self._mandatory = [k for k in self._attrs.values() if k.is_mandatory]
        self._defaults: dict[str, Attr] = {
            known.name: known.default
            for known in self._attrs.values()
            if known.default is not None
        }

    def __iter__(self) -> Iterator[AttrDef]:
        return iter(self._attrs.values())

    def complete(
        self, attrs: Mapping[str, Attr], subject: str, where: str
    ) -> Mapping[str, Attr]:
        """The attributes with defaults filled in; GraphError if one is wrong.

        `subject` names the op in the error, `where` is the user's line.
        """
        for name, value in attrs.items():
            if (known := self._attrs.get(name)) is None:
                what = f"{subject} has no attribute {name!r}."
                raise GraphError(what, where=where, remedy=self._near_names(name))
            if complaint := known.complaint(value):
                what = f"{subject}: the attribute {name!r} {complaint}."
                raise GraphError(what, where=where, remedy=f"It is: {known.doc}")
        for known in self._mandatory:
            if known.name not in attrs:
                what = f"{subject} lacks the attribute {known.name!r}."
                raise GraphError(what, where=where, remedy=f"It is: {known.doc}")
        # Complete attributes make signatures equal, whether a front end wrote a default
        # or not.
        return {**self._defaults, **attrs} if self._defaults else attrs

    def said(self, attrs: Mapping[str, Attr]) -> dict[str, Attr]:
        """The attributes that are not at their default, sorted by name."""
        defaults = self._defaults
        return {n: attrs[n] for n in sorted(attrs) if attrs[n] != defaults.get(n)}

    def from_json(self, data: Mapping[str, Any]) -> dict[str, Attr]:
        """Attributes as JSON has them, which knows lists and no tuples.

        What is no attribute is passed on: whoever makes the op is told.
        """
        return {name: self._typed(name, value) for name, value in data.items()}

    def _typed(self, name: str, value: Any) -> Any:
        known = self._attrs.get(name)
        is_tuple = known is not None and known.type in _TUPLES
        is_list = isinstance(value, list)
        return tuple(cast(_Many, value)) if is_tuple and is_list else value

    def _near_names(self, name: str) -> str:
        if not self._attrs:
            return "Ops of this kind have no attributes."
        return suggest(name, self._attrs)
