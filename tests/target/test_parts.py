"""Chips and systems refuse numbers that contradict each other."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from popple.errors import TargetError
from popple.target import Chip, load_system
from popple.target.schema import Spec, specs_of

BOW = load_system("bow").chip
POD16 = load_system("bow-pod16")
POD128 = load_system("bow-pod128")


def test_a_chip_is_hashable_and_survives_pickling() -> None:
    copy: Chip = pickle.loads(pickle.dumps(BOW))
    assert copy == BOW
    assert hash(copy) == hash(BOW)
    assert copy.sources == BOW.sources


def test_sources_take_no_part_in_equality() -> None:
    assert replace(BOW, sources=()) == BOW


@pytest.mark.parametrize(("key", "spec"), specs_of(Chip).items())
def test_every_constant_of_a_chip_is_verified(key: str, spec: Spec) -> None:
    wrong: Any = "x" if spec.kind is str else -1
    with pytest.raises(TargetError, match=f"^bow: {key} must be "):
        replace(BOW, **{key: wrong})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interleaved_start_bytes": 655_360}, "is above tile_memory_bytes"),
        ({"tile_memory_bytes": 640_000}, "Use 638976 or 655360"),
        ({"interleaved_start_bytes": 200_000}, "Use 196608 or 212992"),
        ({"mean_sync_delay_cycles": 59}, "is above max_sync_delay_cycles"),
        ({"idle_watts": 400.0}, "is above peak_watts"),
        ({"conv_unit_coeff_load_bytes_per_cycle": 32}, "is above conv_unit_max"),
        ({"name": "../bow"}, "no name for a chip"),
        ({"name": ""}, "no name for a chip"),
    ],
)
def test_a_chip_that_contradicts_itself(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TargetError, match=message):
        replace(BOW, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_chips": 18}, "chips_per_machine, 4, does not divide num_chips, 18"),
        ({"num_chips": 8}, "rack_chips, 16, does not divide num_chips, 8"),
        ({"topology": "single"}, "topology is 'single'. Set it to one of: ladder"),
        ({"topology": "ring"}, "topology must be one of"),
        ({"neighbour_bytes_per_second": 0.0}, "its links carry no data"),
        ({"streaming_bytes_per_second": 0.0}, "streaming memory carries no data"),
        ({"device_order": (0, 1)}, "List every number from 0 to 15"),
    ],
)
def test_a_system_that_contradicts_itself(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(TargetError, match=message):
        replace(POD16, **changes)


def test_one_chip_has_no_topology() -> None:
    with pytest.raises(TargetError, match="Set it to one of: single"):
        replace(load_system("bow"), topology="torus")


def test_racks_need_a_gateway_between_them() -> None:
    with pytest.raises(TargetError, match="no gateway joins the racks"):
        replace(POD128, gateway_bytes_per_second=0.0)
