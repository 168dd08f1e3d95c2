"""`gc-info`: lists devices, their attributes, and the state of their tiles."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence

from popple.device.boards import is_fabric, site_of
from popple.device.views import View, look
from popple.errors import DeviceError
from popple.tools.gc.tool import PASSED, Tool, run_tool

_NO_REGISTERS = ("xb_status", "gsp_status", "pci_status")


def add_arguments(parser: ArgumentParser) -> None:
    """One command is needed; the rest are its options."""
    commands = parser.add_mutually_exclusive_group(required=True)
    for flags, help_text in (
        (("-l", "--list-devices"), "list the devices of the active partition"),
        (("--list-all-devices",), "as -l, with the devices of all partitions"),
        (("-i", "--device-info"), "show the attributes of a device"),
        (("--ipu-arch",), "show the architecture of a device"),
        (("--tile-clock-speed",), "show the clock of a device's tiles"),
        (("--ipu-count",), "show the number of IPUs of a device"),
        (("--tile-overview",), "show the state of all tiles, four to a cell"),
        (("--xb-status",), "registers of exchange blocks; virtual IPUs have none"),
        (("--gsp-status",), "registers of sync; virtual IPUs have none"),
        (("--pci-status",), "registers of PCI; virtual IPUs have none"),
    ):
        commands.add_argument(*flags, action="store_true", help=help_text)
    commands.add_argument(
        "--tile-status",
        metavar="TILE",
        help="show the registers of a tile, or with - of all tiles",
    )
    commands.add_argument(
        "--dump-mem",
        nargs=3,
        metavar=("TILE", "ADDRESS", "BYTES"),
        help="show tile memory; numbers may be hexadecimal, as 0x4c000",
    )
    parser.add_argument(
        "-d", "--device-id", type=int, default=0, metavar="ID", help="the device [0]"
    )
    parser.add_argument(
        "-c", "--context", metavar="SU|Wn", help="only this context of a tile"
    )
    parser.add_argument("-r", "--register", metavar="NAME", help="only this register")
    parser.add_argument(
        "--all-partitions", action="store_true", help="list all partitions"
    )


def run(arguments: Namespace) -> int:
    """Run the command that was given."""
    if arguments.list_devices or arguments.list_all_devices:
        everything = arguments.all_partitions or arguments.list_all_devices
        views = list(look(at_all=everything))
        print("Graphcore device listing:")
        for view in views:
            sys.stdout.writelines(f"{line}\n" for line in list_devices(view))
        return PASSED
    for name, command in _ANYTIME.items():
        if getattr(arguments, name):
            command(*_find(arguments.device_id))
            return PASSED
    return _run_exclusive(arguments)


def list_devices(view: View) -> Iterator[str]:
    """The listing of one partition or server."""
    if is_fabric(view.machine.system):
        yield f"Partition: {view.name}{' [active]' if view.is_active else ''}"
        yield from _list_fabric(view)
    else:
        yield from _list_cards(view)


def _list_fabric(view: View) -> Iterator[str]:
    system = view.machine.system
    places: list[str] = []
    for chip_id in range(system.num_chips):
        site = site_of(system, view.machine.name, chip_id)
        places.append(f"IPU-M host: [{site.server}], IPU#: [{site.ipu_number}]")
    for device in view.devices:
        if device.num_chips == 1:
            yield f"-+- Id: [{device.id}], target: [Fabric], {places[device.id]}"
            continue
        yield f"-+- Id: [{device.id}], target: [Multi IPU]"
        for dnc_id, chip_id in enumerate(device.chip_ids):
            yield f" |--- Id: [{chip_id}], DNC Id: [{dnc_id}], {places[chip_id]}"


def _list_cards(view: View) -> Iterator[str]:
    system = view.machine.system
    width = len(f"[{view.devices[-1].id}]")
    for device in view.devices:
        label = f"[{device.id}]".rjust(width)
        if device.num_chips == 1:
            address = site_of(system, view.machine.name, device.id).pci_id
            yield f"-+- Id: {label}, type:      [PCIe], PCI Domain: [{address}]"
            continue
        yield f"-+- Id: {label}, type: [Multi IPU]"
        for dnc_id, chip_id in enumerate(device.chip_ids):
            address = site_of(system, view.machine.name, chip_id).pci_id
            own = f"[{chip_id}]".rjust(width)
            yield f"|--- PCIe Id: {own}, DNC Id: [{dnc_id}], PCI Domain: [{address}]"


def _find(device_id: int) -> tuple[View, Mapping[str, str]]:
    view = look()[0]
    if not 0 <= device_id < len(view.devices):
        raise DeviceError(
            f"There is no device {device_id}: the ids of {view.name} are "
            f"0 to {len(view.devices) - 1}.",
            remedy="List them with gc-info -l.",
        )
    return view, view.describe(view.devices[device_id])


def _show_info(view: View, attributes: Mapping[str, str]) -> None:
    print("Device Info:")
    for key, value in attributes.items():
        print(f"  {key}: {value}")


def _show_architecture(view: View, attributes: Mapping[str, str]) -> None:
    print(attributes["ipu architecture"])


def _show_clock(view: View, attributes: Mapping[str, str]) -> None:
    print(attributes["clock"])


def _show_count(view: View, attributes: Mapping[str, str]) -> None:
    print(attributes.get("ipu count", "1"))


def _run_exclusive(arguments: Namespace) -> int:
    """The commands that look into the device, which nobody else may use meanwhile."""
    from popple.tools.gc import tiles
    from popple.tools.gc.devices import take_bench

    for name in _NO_REGISTERS:
        if getattr(arguments, name):
            raise tiles.refuse_registers(f"--{name.replace('_', '-')}")
    with take_bench(arguments.device_id) as bench:
        lines: Sequence[str] | Iterator[str]
        if arguments.tile_overview:
            lines = tiles.draw_overview(bench)
        elif arguments.dump_mem:
            lines = tiles.dump_memory(bench, *arguments.dump_mem)
        else:
            lines = tiles.list_registers(
                bench, arguments.tile_status, arguments.context, arguments.register
            )
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return PASSED


_ANYTIME: Mapping[str, Callable[[View, Mapping[str, str]], None]] = {
    "device_info": _show_info,
    "ipu_arch": _show_architecture,
    "tile_clock_speed": _show_clock,
    "ipu_count": _show_count,
}

TOOL = Tool(
    "gc-info",
    "show information about IPU devices",
    "Lists the devices of the active partition, or shows one of them. Listing, "
    "--device-info, --ipu-arch, --tile-clock-speed and --ipu-count work at any time; "
    "the other commands need the device for themselves.\n\n"
    "These devices are virtual: attributes that change come from modelled telemetry, "
    "and on a device that nobody uses no program is loaded, so that registers and "
    "memory read as zero.",
    add_arguments,
    run,
    ("gc-info -l", "gc-info -d 0 -i", "gc-info -d 0 --tile-status - -c SU -r PC"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
