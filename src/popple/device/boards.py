"""Where the chips of a machine sit: boards, servers, slots, and names for them.

In: a `System`, the name of the machine and a chip. Out: its `Site`. Fabric machines
hold their chips on boards of two; PCIe cards are the boards of a server. Addresses
and serial numbers are made from names: a virtual chip has no label to read.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from popple.target import System

# The listing of a DSS 8440 in the documentation of TensorFlow's IPUConfig.
_DSS8440_BUSES = (
    "1a", "1b", "23", "24", "3d", "3e", "43", "44",
    "8b", "8c", "8e", "8f", "b8", "b9", "ba", "bb",
)  # fmt: skip
_FIRST_BUS = 0x1A
_FIRST_HOST = 10

_BOARD_TYPES = {"gc2": "C2", "c600": "C600"}
_BOARD_VARIANTS = {"bow": "Bow-2000"}


@dataclass(frozen=True)
class Site:
    """Where a chip sits, and the names under which tools list it.

    `ipu_number` counts the chips of a machine from the far end, as IPU-Machines do.
    `server` is the address of the machine, `pci_id` that of a card's chip.
    """

    chip_id: int
    board_index: int
    board_ipu_index: int
    server: str
    ipu_number: int
    pci_id: str
    slot: int
    serial: str


def is_fabric(system: System) -> bool:
    """Whether chips are reached over a fabric, and not as PCIe cards of this server."""
    return bool(system.fabric_bits_per_second)


def board_type(system: System) -> str:
    """The kind of board as tools name it."""
    return _BOARD_TYPES.get(system.chip.name, "M2000")


def board_variant(system: System) -> str:
    """The kind of board with its chips told apart."""
    return _BOARD_VARIANTS.get(system.chip.name, board_type(system))


def site_of(system: System, machine_name: str, chip_id: int) -> Site:
    """Where a chip of a machine sits."""
    machine, inside = divmod(chip_id, system.chips_per_machine)
    board, on_board = divmod(chip_id, system.chips_per_board)
    ipu_number = system.chips_per_machine - 1 - inside
    return Site(
        chip_id,
        board,
        ipu_number if is_fabric(system) else on_board,
        # All machines are this host: each has a loopback address of its own.
        f"127.0.1.{_FIRST_HOST + machine}",
        ipu_number,
        str(ipu_number) if is_fabric(system) else _pci_address(system, chip_id),
        board,
        _serial_of(machine_name, board),
    )


def _pci_address(system: System, chip_id: int) -> str:
    if system.num_chips == len(_DSS8440_BUSES):
        return f"0000:{_DSS8440_BUSES[chip_id]}:00.0"
    return f"0000:{_FIRST_BUS + chip_id:02x}:00.0"


def _serial_of(machine_name: str, board: int) -> str:
    """Three groups of digits as on real boards; the last one is from the name."""
    number = zlib.crc32(f"{machine_name}/{board // 2}".encode()) % 10_000_000
    # The two boards of an IPU-Machine differ in the middle group, the second first.
    return f"{board // 2:04d}.{2 - board % 2:04d}.{number:07d}"
