"""Quickly made dataclasses are what they were before."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from popple.quick import quick, replaced


@quick
@dataclass(frozen=True, slots=True)
class Box:
    """A field without a default, one with a value, one with a factory."""

    width: int
    label: str = "box"
    parts: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError(self.width)


def test_fields_defaults_and_comparison_are_those_of_a_dataclass() -> None:
    assert Box(1) == Box(width=1, label="box", parts=[])
    assert repr(Box(1, "b", [2])) == "Box(width=1, label='b', parts=[2])"
    assert replace(Box(1), label="c") == Box(1, "c")
    assert [each.name for each in fields(Box)] == ["width", "label", "parts"]


def test_every_box_has_a_list_of_its_own() -> None:
    assert Box(1).parts is not Box(1).parts


def test_it_is_frozen_and_checked() -> None:
    with pytest.raises(FrozenInstanceError):
        Box(1).width = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="-1"):
        Box(-1)
    with pytest.raises(TypeError, match="width"):
        Box()  # pyright: ignore[reportCallIssue]


def test_a_changed_copy_is_checked() -> None:
    assert replaced(Box(1), width=2) == Box(2)
    with pytest.raises(ValueError, match="-1"):
        replaced(Box(1), width=-1)


def test_it_holds_its_fields_alone_and_is_copied_and_pickled() -> None:
    box = Box(1, "b", [2])
    assert not hasattr(box, "__dict__")
    twin = copy.deepcopy(box)
    assert twin == box
    assert twin.parts is not box.parts
    assert pickle.loads(pickle.dumps(box)) == box
