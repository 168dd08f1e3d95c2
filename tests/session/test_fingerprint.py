"""Fingerprints of objects and code: equal for equal programs, and for no others."""

from __future__ import annotations

import collections
import enum
import functools
import os
import random
import re
import threading
import time
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from os import getenv
from typing import Any

import pytest

from popple.session.fingerprint import Fingerprint, Unknown
from popple.session.packages import Packages

LIMIT = 3


def digest(value: Any, environ: dict[str, str] | None = None) -> str:
    made = Fingerprint(Packages(), environ=environ)
    made.add(value, "value")
    return made.hexdigest()


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Record:
    """Plain data."""

    size: int = 1
    names: list[str] = field(default_factory=list[str])


class Slotted:
    """Without a dict."""

    __slots__ = ("__hidden", "size")

    def __init__(self, size: int, hidden: int) -> None:
        self.size, self.__hidden = size, hidden


class Odd(list[int]):
    """A list with an attribute."""

    extra = 0


def odd(extra: int) -> Odd:
    made = Odd([1])
    made.extra = extra
    return made


PAIRS: list[tuple[Any, Any]] = [
    (1, 2),
    (1, 1.0),
    (1, True),
    ("a", b"a"),
    (0.0, -0.0),
    (("a", "bc"), ("ab", "c")),
    ([1], (1,)),
    ([[]], [[], []]),
    ({"a": 1}, {"a": 2}),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({1, 2}, {1, 3}),
    (Colour.RED, Colour.BLUE),
    (Record(1), Record(2)),
    (Record(names=["a"]), Record(names=["b"])),
    (Slotted(1, 2), Slotted(1, 3)),
    (odd(1), odd(2)),
    (collections.defaultdict(int), collections.defaultdict(list)),
    (collections.deque([1]), collections.deque([2])),
    (re.compile("a"), re.compile("b")),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2})),
    (range(3), range(4)),
    (int, float),
    (len, max),
    ("a".join, "b".join),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    assert digest(one) == digest(one)
    assert digest(one) != digest(other)


def test_sharing_is_part_of_a_value() -> None:
    shared: list[int] = []
    assert digest([shared, shared]) != digest([[], []])


def test_values_may_lead_to_themselves() -> None:
    value: list[Any] = [1]
    value.append(value)
    assert digest(value) == digest(value)


def calls_global(x: int) -> int:
    return x * LIMIT


def calls_other(x: int) -> int:
    return calls_global(x) + 1


def test_globals_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(calls_other)
    monkeypatch.setattr("tests.session.test_fingerprint.LIMIT", 4)
    assert digest(calls_other) != before


def closing_over(value: Any) -> Callable[[], Any]:
    return lambda: value


def test_closures_are_followed() -> None:
    assert digest(closing_over(1)) == digest(closing_over(1))
    assert digest(closing_over(1)) != digest(closing_over(2))


def reads_environment() -> str | None:
    return os.environ.get("A_SWITCH")


def test_variables_named_in_code_count() -> None:
    before = digest(reads_environment, {})
    assert digest(reads_environment, {"A_SWITCH": "1"}) != before
    assert digest(reads_environment, {"ANOTHER": "1"}) == before


SWITCH = "A_SWITCH"
READ_BY_NAME: dict[str, Callable[[str], Any]] = {
    "environ": lambda _: os.environ["A_SWITCH"],
    "get": lambda given: os.environ.get("A_SWITCH", given),
    "getenv": lambda given: os.getenv("A_SWITCH", given),
    "in": lambda _: "A_SWITCH" in os.environ,
    "a global name": lambda _: os.environ.get(SWITCH),
    "a global reader": lambda _: getenv(SWITCH),
}
READ_BY_MADE_NAME: dict[str, Callable[[str], Any]] = {
    "environ": lambda given: os.environ[f"A_{given}"],
    "get": lambda given: os.environ.get("A_" + given, "0"),
    "getenv": lambda given: os.getenv(f"A_{given}", "0"),
    "sum": lambda given: os.getenv("A_" + given),
    "in": lambda given: f"A_{given}" in os.environ,
    "an argument": lambda given: os.environ[given],
    "all": lambda _: dict(os.environ),
    "a global reader": lambda given: getenv(given),
}


@pytest.mark.parametrize("case", READ_BY_NAME)
def test_variables_count_however_they_are_read(case: str) -> None:
    before = digest(READ_BY_NAME[case], {})
    assert digest(READ_BY_NAME[case], {"A_SWITCH": "1"}) != before
    assert digest(READ_BY_NAME[case], {"ANOTHER": "1"}) == before


@pytest.mark.parametrize("case", READ_BY_MADE_NAME)
def test_variables_whose_names_are_made_cannot_be_judged(case: str) -> None:
    with pytest.raises(Unknown, match="by names that it makes"):
        digest(READ_BY_MADE_NAME[case], {"A_SWITCH": "1"})


def reads_clock() -> float:
    return time.time()


def draws() -> float:
    return random.random()


def reads_file() -> str:
    with open("data") as file:
        return file.read()


def imports_late() -> Any:
    import a_module_that_is_not_there  # pyright: ignore[reportMissingImports]

    return a_module_that_is_not_there


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (reads_clock, "uses time"),
        (draws, "uses random"),
        (reads_file, r"calls open\(\)"),
        (imports_late, "imports a_module_that_is_not_there"),
        (threading.Lock(), "lock"),
        (iter([1]), "has state of its own"),
        ({"a": [Record(), object]}, None),
        ({"deep": [iter([1])]}, r"value\.deep\.0: a list_iterator"),
        ({object()}, "a set of objects has no order"),
    ],
)
def test_what_cannot_be_judged_is_refused(value: Any, why: str | None) -> None:
    if why is None:
        assert digest(value)
        return
    with pytest.raises(Unknown, match=why):
        digest(value)


def test_methods_of_a_class_count() -> None:
    def make(factor: int) -> type:
        return type("Made", (), {"call": lambda self: factor, "__module__": __name__})

    assert digest(make(1)) == digest(make(1))
    assert digest(make(1)) != digest(make(2))
    assert digest(make(1)()) != digest(make(2)())


def test_versions_name_python_and_popple() -> None:
    packages = Packages()
    assert packages.is_installed("pytest")
    assert packages.is_installed("json")
    assert packages.is_installed("popple.session")
    assert not packages.is_installed(__name__)
    packages.identify("pytest")
    assert any(text.startswith("pytest ") for text in packages.versions())
