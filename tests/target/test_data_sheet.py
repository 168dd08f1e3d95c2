"""The figures on the data sheets of a Bow and a Bow-2000, as preset values."""

from __future__ import annotations

import pytest

from popple.target import list_chips, list_systems, load_system
from popple.target.machine import Chip, System

BOW = load_system("bow").chip
MACHINE = load_system("bow-2000")


def test_memory() -> None:
    assert BOW.num_tiles * BOW.tile_memory_bytes == 940_572_672
    assert BOW.memory_bytes_per_second == 65.4e12
    machine = MACHINE.num_chips * BOW.memory_bytes_per_second
    assert machine == pytest.approx(260e12, rel=0.01)
    assert MACHINE.num_chips * BOW.num_tiles * BOW.tile_memory_bytes > 3.6e9


def test_links() -> None:
    assert BOW.num_links == 10
    assert BOW.link_peak_bytes_per_second == 320e9
    assert MACHINE.fabric_bits_per_second == 2.8e12


def test_host() -> None:
    assert (BOW.pcie_lanes, BOW.pcie_transfers_per_second) == (16, 16e9)
    assert BOW.host_peak_bytes_per_second == 64e9


@pytest.mark.parametrize("chip", list_chips(), ids=lambda chip: chip.name)
def test_memory_bandwidth_is_that_of_the_data_path(chip: Chip) -> None:
    per_cycle = chip.memory_bytes_per_second / (chip.num_tiles * chip.clock_hz)
    assert 22 < per_cycle < 25


@pytest.mark.parametrize("system", list_systems(), ids=lambda system: system.name)
def test_rates_of_the_model_stay_below_the_data_sheet(system: System) -> None:
    # The data sheet counts both directions, the model one.
    chip = system.chip
    assert 2 * system.link_bytes_per_second <= chip.link_peak_bytes_per_second
    assert 2 * system.host_bytes_per_second <= chip.host_peak_bytes_per_second
