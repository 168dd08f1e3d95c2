"""Targets: how much of a system a program takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.errors import TargetError
from popple.target import Target, load_system, load_target


def test_tiles_are_those_of_one_replica() -> None:
    target = load_target("bow-pod16", num_chips=4, num_replicas=2)
    assert target.tiles_per_chip == 1472
    assert target.num_tiles == 4 * 1472
    assert target.chip is target.system.chip


def test_one_chip_once_by_default() -> None:
    assert load_target("gc2") == Target(load_system("gc2"), 1, 1)


def test_changed_copies() -> None:
    target = load_target("pod16").with_chips(4).with_replicas(4)
    assert (target.num_chips, target.num_replicas) == (4, 4)
    assert target == load_target("pod16", 4, 4)


@pytest.mark.parametrize(
    ("name", "num_chips", "num_replicas", "remedy"),
    [
        ("bow", 2, 1, "Take 'bow-2000', which has 4"),
        ("m2000", 2, 4, "Take 'pod16', which has 16"),
        ("pod16", 8, 4, "Take 'pod64', which has 64"),
        ("c600x2", 3, 1, "Take 'c600x4', which has 4"),
        ("c2", 1, 3, "Take 'dss8440', which has 16"),
        ("bow-pod256", 256, 2, "Describe a system with num_chips = 512"),
    ],
)
def test_too_small_a_system_names_the_next(
    name: str, num_chips: int, num_replicas: int, remedy: str
) -> None:
    with pytest.raises(TargetError, match="chips are needed") as caught:
        load_target(name, num_chips, num_replicas)
    assert caught.value.remedy.startswith(remedy)


def test_no_built_in_system_has_the_chip_of_a_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "bow"\nnum_tiles = 2\n', encoding="utf-8")
    with pytest.raises(TargetError, match="Describe a system with num_chips = 2 in"):
        load_target(path, num_chips=2)


@pytest.mark.parametrize(("num_chips", "num_replicas"), [(0, 1), (1, 0), (-1, -1)])
def test_counts_are_positive(num_chips: int, num_replicas: int) -> None:
    with pytest.raises(TargetError, match="must be positive"):
        load_target("pod16", num_chips, num_replicas)
