"""Attributes of a device: names and values as text, as the documented tools show them.

In: a machine, a device of it and who holds what. Out: one mapping of text to text,
which gc-info, gc-inventory, gc-monitor, vipu and gcipuinfo share. Fixed facts come from
the target's constants, changing ones from the telemetry. A virtual device has no
firmware and no driver: there the version of Popple stands.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence

from popple._version import __version__
from popple.device.boards import Site, board_type, board_variant, is_fabric, site_of
from popple.device.machine import Machine
from popple.device.numbering import Device
from popple.device.pod import Pod
from popple.device.registry import Holder
from popple.device.telemetry import Telemetry, list_board, read_telemetry
from popple.target import System

# The host's part of a remote buffer is a page table of this size on every listing.
_PAGE_TABLE_BYTES = 268_435_456


def describe(
    machine: Machine,
    device: Device,
    holders: Sequence[Holder] | None = None,
    now: float | None = None,
) -> dict[str, str]:
    """All attributes of a device at `now`, in seconds since the epoch.

    `holders` are those of the machine; without them they are looked up.
    """
    known = Pod(machine).holders() if holders is None else holders
    moment = time.time() if now is None else now
    if device.num_chips > 1:
        return _describe_group(machine, device, known, moment)
    return _describe_chip(machine, device.chip_ids[0], known, moment)


def partition_of(machine: Machine) -> str:
    """The name under which tools list the machine."""
    return machine.partition or machine.name


def render_clock(hertz: float) -> str:
    """`1850MHz`: programs take the number from all but the last three letters."""
    return f"{hertz / 1e6:.0f}MHz"


def render_celsius(celsius: float) -> str:
    """`36.2 C`."""
    return f"{celsius:.1f} C"


def render_watts(watts: float) -> str:
    """`99.5 W`."""
    return f"{watts:.1f} W"


def executable_of(command: str) -> str:
    """The program of a command line, as a process list names it.

    Tools of ours are Python programs; like others of their kind they go by their name.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    names = [os.path.basename(word) for word in words[:2]]
    if len(names) > 1 and names[1].startswith(("gc-", "vipu", "pop")):
        return names[1]
    return names[0] if names else ""


def _describe_chip(
    machine: Machine, chip_id: int, holders: Iterable[Holder], now: float
) -> dict[str, str]:
    system = machine.system
    site = site_of(system, machine.name, chip_id)
    by_chip = {holder.chip_id: holder for holder in holders}
    holder = by_chip.get(chip_id)
    telemetry = read_telemetry(machine, chip_id, holder, now, by_chip.values())
    parts: list[Mapping[str, str]] = [
        _describe_board(system, site),
        _describe_sensors(telemetry),
        _describe_versions(),
        _describe_memory(system),
        _describe_links(system, site),
        _describe_fabric(machine, site) if is_fabric(system) else {},
        _describe_holder(holder) if holder else {},
    ]
    found = {key: value for part in parts for key, value in part.items()}
    kind = "Fabric" if is_fabric(system) else "PCIe"
    # The documented listings begin with these two and go on in alphabetical order.
    return {"id": str(chip_id), "target": kind, **dict(sorted(found.items()))}


def _describe_board(system: System, site: Site) -> dict[str, str]:
    return {
        "board ipu index": str(site.board_ipu_index),
        "board serial number": site.serial,
        "board type": board_type(system),
        "board variant": board_variant(system),
        "ipu architecture": system.chip.architecture,
        "ipu error state": "no errors",
        "parity error count threshold": "4",
        "parity error threshold interval": "7776000 seconds",
        "parity initialised": "1",
    }


def _describe_sensors(telemetry: Telemetry) -> dict[str, str]:
    return {
        "average board temp": render_celsius(telemetry.board_temp_c),
        "average die temp": render_celsius(telemetry.die_temp_c),
        "clock": render_clock(telemetry.clock_hz),
        "ipu power": render_watts(telemetry.ipu_power_w),
        "ipu utilisation": f"{100 * telemetry.utilisation:.2f}%",
        "ipu utilisation (session)": f"{100 * telemetry.session_utilisation:.2f}%",
        "total board power": render_watts(telemetry.board_power_w),
    }


def _describe_versions() -> dict[str, str]:
    major, minor, patch = [*__version__.split("."), "0", "0"][:3]
    return {
        "driver version": __version__,
        "firmware major version": major,
        "firmware minor version": minor,
        "firmware patch version": patch,
        "firmware version": __version__,
        "icu bootloader version": __version__,
    }


def _describe_memory(system: System) -> dict[str, str]:
    streaming = system.streaming_memory_bytes_per_machine // system.chips_per_machine
    return {
        "hexoatt active size (bytes)": "0",
        "hexoatt total size (bytes)": str(streaming),
        "hexopt active size (bytes)": "0",
        "hexopt total size (bytes)": str(_PAGE_TABLE_BYTES),
        # The listings and a helper of the published examples name it differently.
        "remote buffers": "1",
        "remote buffers supported": "1",
    }


def _describe_links(system: System, site: Site) -> dict[str, str]:
    chip = system.chip
    return {
        "link correctable error count": "0",
        "link correctable error count (session)": "0",
        "link speed": f"{chip.pcie_transfers_per_second / 1e9:.1f} GT/s",
        "link width": str(chip.pcie_lanes),
        "numa node": "0",
        "pci id": site.pci_id,
        "pcie physical slot": str(site.slot),
        "sysfs file id": str(site.chip_id),
    }


def _describe_fabric(machine: Machine, site: Site) -> dict[str, str]:
    return {
        "gateway software version": __version__,
        "graph streaming": "true",
        "host link correctable error count": "0",
        "ipuof host": site.server,
        "ipuof partition id": partition_of(machine),
        "ipuof routing id": "0",
        "ipuof routing type": "DNC",
        "ipuof server version": __version__,
        "number of replicas": "1",
        "partition sync type": "c2-compatible",
        "reconfigurable partition": "true",
    }


def _describe_holder(holder: Holder) -> dict[str, str]:
    started = holder.since.replace("-", "").replace(":", "")
    return {
        "process start time": started.partition("+")[0] + "Z",
        "user executable": executable_of(holder.command),
        "user name": holder.user,
        "user process id": str(holder.pid),
    }


def _describe_group(
    machine: Machine, device: Device, holders: Sequence[Holder], now: float
) -> dict[str, str]:
    """What holds for a group; temperatures and serial numbers are its chips' own."""
    chips = [_describe_chip(machine, c, holders, now) for c in device.chip_ids]
    boards = {list_board(machine, chip_id)[0]: chip_id for chip_id in device.chip_ids}
    by_id = dict(zip(device.chip_ids, chips, strict=True))
    watts = sum(_watts_of(by_id[c]["total board power"]) for c in boards.values())
    same = ("board type", "board variant", "clock", "driver version")
    more = ("firmware version", "ipu architecture", "remote buffers supported")
    found = {key: chips[0][key] for key in (*same, *more)}
    found["ipu count"] = str(device.num_chips)
    found["ipu ids"] = " ".join(map(str, device.chip_ids))
    found["total board power"] = render_watts(watts)
    first = {"id": str(device.id), "target": "Multi IPU"}
    return {**first, **dict(sorted(found.items()))}


def _watts_of(text: str) -> float:
    return float(text.removesuffix(" W"))
