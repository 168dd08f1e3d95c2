"""`popple targets`: the list, one system in full, unknown names."""

from __future__ import annotations

import pytest

from popple.target import describe, list_systems
from popple.tools import cli, targets


def test_the_list_has_one_line_per_system() -> None:
    lines = targets.render_list().splitlines()
    names = [line.split()[0] for line in lines[2:]]
    assert names == [system.name for system in list_systems()]


def test_tiles_are_those_of_all_chips() -> None:
    (line,) = [x for x in targets.render_list().splitlines() if "bow-pod16" in x]
    # 16 chips of 1,472 tiles.
    assert line.split()[1:4] == ["16", "bow", "23,552"]


def test_one_system_shows_every_constant_with_its_source() -> None:
    text = targets.render_one("bow-pod16")
    for constant in describe("bow-pod16"):
        assert constant.name in text
        assert constant.source in text


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["targets", "bow-pd16"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("popple: error: Unknown system 'bow-pd16'.")
    assert "'bow-pod16'" in printed.err


@pytest.mark.parametrize(
    ("value", "text"),
    [(1472, "1,472"), (2.5, "2.5"), (1e9, "1,000,000,000"), ("a", "a")],
)
def test_values_are_readable(value: float | str, text: str) -> None:
    assert targets.render_value(value) == text
