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
# Numbers of each unit from which on no machine is meant: a slip, or a wrong unit.
_LIMITS: Mapping[str, float] = {
    "tiles": 1e6,
    "workers": 1e3,
    "chips": 1e6,
    "Hz": 1e12,
    "B": 1e15,
    "address": 1e15,
    "bit": 1e5,
    "B/cycle": 1e6,
    "cycles": 1e9,
    "units": 1e4,
    "elements/cycle": 1e4,
    "stages": 1e3,
    "iterations": 1e18,
    "W": 1e6,
    "pJ/B": 1e6,
    "B/s": 1e16,
    "ns": 1e12,
    "s": 1e6,
    "C": 1e4,
    "K/W": 1e4,
    "links": 1e4,
    "lanes": 1e4,
    "T/s": 1e12,
    "bit/s": 1e17,
}


@dataclass(frozen=True)
class Spec:
    """What may stand in one constant."""

    unit: str
    kind: type[int] | type[float] | type[str] = int
    can_be_zero: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0

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
        limit = _LIMITS[self.unit]
        # Written so that `nan`, which TOML allows, fails it too.
        if not value < limit:
            return f"must be a number below {limit:g} {self.unit}, but is {value}"
        if value < 0 or (value == 0 and not self.can_be_zero):
            least = "zero or more" if self.can_be_zero else "positive"
            return f"must be {least}, but is {value}"
        if value < self.least:
            return f"must be {self.least} or more, but is {value}"
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
    least: int = 0,
) -> dict[str, Spec]:
    """Field metadata that makes a dataclass field a constant."""
    return {_SPEC_KEY: Spec(unit, kind, can_be_zero, choices, least)}


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
