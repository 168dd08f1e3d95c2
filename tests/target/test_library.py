"""Names of built-in systems, and what is said about wrong ones."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import TargetError
from popple.target import describe, list_chips, list_systems, load_system
from popple.target.schema import specs_of

NAMES = [system.name for system in list_systems()]


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("BOW-POD16", "bow-pod16"),
        ("bow-pod-16", "bow-pod16"),
        ("Bow Pod 16", "bow-pod16"),
        ("bow_pod16", "bow-pod16"),
        ("ipu-pod16", "pod16"),
        ("IPU-POD64", "pod64"),
        ("IPU-M2000", "m2000"),
        ("bow2000", "bow-2000"),
        ("Bow-M2000", "bow-2000"),
        ("C600", "c600"),
        ("c600-x4", "c600x4"),
        ("Bow", "bow"),
        ("Mk1", "gc2"),
        ("ipu1", "gc2"),
        ("ipu2", "gc200"),
        ("ipu21", "c600"),
        ("DSS-8440", "dss8440"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    assert load_system(alias).name == name


@given(st.sampled_from(NAMES), st.randoms())
def test_names_are_free_in_case_and_hyphens(name: str, random: Random) -> None:
    spelt = "".join(
        random.choice([letter, letter.upper(), f"-{letter}", f"{letter}_"])
        for letter in name
    )
    assert load_system(spelt).name == name


@pytest.mark.parametrize("chip", [chip.name for chip in list_chips()])
def test_the_name_of_a_chip_is_a_system_of_one(chip: str) -> None:
    system = load_system(chip)
    assert (system.num_chips, system.chip.name) == (1, chip)
    assert system.topology == "single"


def test_a_wrong_name_names_the_nearest() -> None:
    with pytest.raises(TargetError, match=r"Unknown system 'bow-pod17'.*'bow-pod16'"):
        load_system("bow-pod17")


def test_a_far_name_lists_all() -> None:
    with pytest.raises(TargetError, match=r"Known names: .*m2000.*ends in \.toml"):
        load_system("zzz")


def test_systems_are_listed_by_chip_and_size() -> None:
    keys = [(system.chip.name, system.num_chips) for system in list_systems()]
    assert keys == sorted(keys)


def test_describe_lists_every_constant_with_unit_and_source() -> None:
    rows = describe("bow-pod16")
    system = load_system("bow-pod16")
    expected = [*specs_of(type(system)), *specs_of(type(system.chip))]
    assert [row.name for row in rows] == expected
    assert all(row.unit and row.source for row in rows)


def test_describe_says_whose_a_constant_is() -> None:
    rows = {row.name: row for row in describe("pod64")}
    assert (rows["num_chips"].part, rows["num_chips"].value) == ("system pod64", 64)
    assert (rows["clock_hz"].part, rows["clock_hz"].unit) == ("chip gc200", "Hz")
