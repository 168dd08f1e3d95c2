"""The rules a constant obeys: its unit, its kind and what values make sense.

The fields of `Chip` and `System` carry a `Spec` in their metadata, so the classes
themselves are the list of known keys. In: a field or a value. Out: its `Spec`, or a
sentence that says what is wrong with the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias, cast

from popple.errors import TargetError

Scalar: TypeAlias = int | float | str
Sources: TypeAlias = tuple[tuple[str, str], ...]

_KIND_NAMES: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
}
_SPEC_KEY = "spec"
_LIMIT = 1e30


@dataclass(frozen=True)
class Spec:
    """What may stand in one constant."""

    unit: str
    kind: type[int] | type[float] | type[str] = int
    can_be_zero: bool = False
    choices: tuple[str, ...] = ()

    def find_fault(self, value: object) -> str | None:
        """What is wrong with `value`, as the end of a sentence, or None."""
        if self.kind is str and isinstance(value, str):
            return self._find_choice_fault(value)
        # `type`, because True and False are ints to isinstance.
        if self.kind is not str and type(value) in (int, self.kind):
            return self._find_number_fault(cast("int | float", value))
        return f"must be {_KIND_NAMES[self.kind]}, but is {value!r}"

    def _find_choice_fault(self, value: str) -> str | None:
        if value in self.choices:
            return None
        return f"must be one of {', '.join(self.choices)}, but is {value!r}"

    def _find_number_fault(self, value: int | float) -> str | None:
        # Written so that `nan`, which TOML allows, fails it too.
        if not value < _LIMIT:
            return f"must be a number below {_LIMIT:g}, but is {value}"
        if value < 0 or (value == 0 and not self.can_be_zero):
            least = "zero or more" if self.can_be_zero else "positive"
            return f"must be {least}, but is {value}"
        return None


@dataclass(frozen=True)
class Constant:
    """One row of `describe`: a constant of a chip or a system, and where it is from."""

    part: str
    name: str
    value: Scalar
    unit: str
    source: str


def constant(
    unit: str,
    kind: type[int] | type[float] | type[str] = int,
    *,
    can_be_zero: bool = False,
    choices: tuple[str, ...] = (),
) -> dict[str, Spec]:
    """Field metadata that makes a dataclass field a constant."""
    return {_SPEC_KEY: Spec(unit, kind, can_be_zero, choices)}


def specs_of(part_class: type) -> dict[str, Spec]:
    """The constants of `Chip` or `System`, by name, in the order of the class."""
    return {f.name: f.metadata[_SPEC_KEY] for f in fields(part_class) if f.metadata}


def constants_of(part: object) -> dict[str, Scalar]:
    """The values of a chip's or a system's constants, by name."""
    return {name: getattr(part, name) for name in specs_of(type(part))}


def verify_constants(part: object, name: str) -> None:
    """Raise for a badly named part or for its first constant that makes no sense."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise TargetError(
            f"{name!r} is no name for a chip or system.",
            remedy="Use letters, digits, '.', '_' and '-', letter or digit first.",
        )
    for key, spec in specs_of(type(part)).items():
        fault = spec.find_fault(getattr(part, key))
        if fault:
            raise TargetError(f"{key} {fault}.", where=name)


def describe_part(part: object, label: str, sources: Sources) -> tuple[Constant, ...]:
    """The constants of one part as rows; `label` says whose they are."""
    found = dict(sources)
    values = constants_of(part)
    return tuple(
        Constant(label, name, values[name], spec.unit, found.get(name, "not stated"))
        for name, spec in specs_of(type(part)).items()
    )
