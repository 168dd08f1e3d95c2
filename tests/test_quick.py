"""Quickly made dataclasses are what they were before."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from popple.quick import quick, replaced


@quick
@dataclass(frozen=True)
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


def test_a_changed_copy_is_checked_and_has_no_more_than_the_fields() -> None:
    box = Box(1)
    box.__dict__["kept"] = "worked out from the width"
    assert replaced(box, width=2) == Box(2)
    assert "kept" not in replaced(box, width=2).__dict__
    with pytest.raises(ValueError, match="-1"):
        replaced(box, width=-1)
