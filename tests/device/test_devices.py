"""Device ids are those of the real machines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from popple.device import number_devices
from popple.target import System, list_systems, load_system


def ids_by_size(system: System) -> dict[int, tuple[int, int]]:
    """First and last id of every size of device."""
    sizes: dict[int, list[int]] = {}
    for device in number_devices(system):
        sizes.setdefault(device.num_chips, []).append(device.id)
    return {size: (ids[0], ids[-1]) for size, ids in sizes.items()}


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("bow", {1: (0, 0)}),
        ("c2", {1: (0, 1), 2: (2, 2)}),
        ("m2000", {1: (0, 3), 2: (4, 5), 4: (6, 6)}),
        ("c600x8", {1: (0, 7), 2: (8, 11), 4: (12, 13), 8: (14, 14)}),
        ("pod16", {1: (0, 15), 2: (16, 23), 4: (24, 27), 8: (28, 29), 16: (30, 30)}),
    ],
)
def test_ids_of_each_size(system: str, expected: dict[int, tuple[int, int]]) -> None:
    assert ids_by_size(load_system(system)) == expected


@pytest.mark.parametrize("system", list_systems(), ids=lambda system: system.name)
def test_n_chips_have_2n_minus_1_ids(system: System) -> None:
    # Sizes are powers of two here, and n + n/2 + ... + 1 = 2n - 1.
    devices = number_devices(system)
    assert [device.id for device in devices] == list(range(2 * system.num_chips - 1))


@pytest.mark.parametrize("system", list_systems(), ids=lambda system: system.name)
def test_devices_of_one_size_share_no_chip(system: System) -> None:
    sizes: dict[int, list[int]] = {}
    for device in number_devices(system):
        sizes.setdefault(device.num_chips, []).extend(device.chip_ids)
    for chip_ids in sizes.values():
        assert sorted(chip_ids) == list(range(system.num_chips))


def test_groups_of_a_pod_are_consecutive() -> None:
    devices = number_devices(load_system("pod4"))
    assert [device.chip_ids for device in devices[4:]] == [(0, 1), (2, 3), (0, 1, 2, 3)]


def test_groups_of_a_dss8440_follow_its_wiring() -> None:
    # As in the device listing of a real DSS 8440.
    devices = number_devices(load_system("dss8440"))
    assert devices[16].chip_ids == (5, 7)
    assert sorted(devices[24].chip_ids) == [4, 5, 6, 7]
    assert sorted(devices[25].chip_ids) == [0, 1, 2, 3]


def test_a_number_of_chips_that_is_no_power_of_two() -> None:
    cards = load_system("c600x8")
    six = replace(cards, num_chips=6, chips_per_machine=6, rack_chips=6)
    groups = [device.chip_ids for device in number_devices(six)[6:]]
    assert groups == [(0, 1), (2, 3), (4, 5), (0, 1, 2, 3), (0, 1, 2, 3, 4, 5)]
