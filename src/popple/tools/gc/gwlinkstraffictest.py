"""`gc-gwlinkstraffictest`: tests transfers between racks over their gateways."""

from __future__ import annotations

import itertools
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from popple.device import find_machine
from popple.device.faults import FaultInjector
from popple.errors import DeviceError
from popple.target import System
from popple.tools.gc.devices import hold_chips, read_device_options
from popple.tools.gc.tool import (
    FAILED,
    PASSED,
    Tool,
    add_json_option,
    positive,
    print_json,
    run_tool,
)

_BYTES_PER_TILE = 64 * 1024


def add_arguments(parser: ArgumentParser) -> None:
    """How much."""
    add_json_option(parser)
    parser.add_argument(
        "-i",
        "--iterations",
        type=positive,
        default=100,
        metavar="N",
        help="transfers of 64 KB per tile each way [100]",
    )


def run(arguments: Namespace) -> int:
    """The first IPU of each rack exchanges data with that of the next."""
    from popple.tools.gc.traffic import move_words, time_links

    system = find_machine().system
    pairs = list_pairs(system)
    injector = FaultInjector(read_device_options())
    each = _BYTES_PER_TILE * system.chip.num_tiles
    with hold_chips({chip for pair in pairs for chip in pair}):
        errors = sum(
            move_words(each, end, injector.strike("link", chip_id))
            for pair in pairs
            for end, chip_id in enumerate(pair)
        )
        seconds = time_links(system, pairs, _BYTES_PER_TILE, arguments.iterations)
    num_bytes = 2 * each * len(pairs) * arguments.iterations
    rate = num_bytes / seconds / 1e9
    if arguments.json_output:
        print_json(
            {
                "racks": system.num_chips // system.rack_chips,
                "duration_sec": seconds,
                "gbytes_transferred": num_bytes / 1e9,
                "gbps": rate,
                "errors": errors,
                "result": "failed" if errors else "passed",
            }
        )
    else:
        print(f"{len(pairs)} pairs of racks: {rate:.2f} GB/s, {errors} errors")
    return FAILED if errors else PASSED


def list_pairs(system: System) -> list[tuple[int, int]]:
    """The first chips of neighbouring racks."""
    if system.num_chips <= system.rack_chips or not system.gateway_bytes_per_second:
        raise DeviceError(
            f"{system.name} is one rack: no data pass the gateways.",
            remedy="Choose a larger one: POPPLE_TARGET=bow-pod128.",
        )
    first = range(0, system.num_chips, system.rack_chips)
    return list(itertools.pairwise(first))


TOOL = Tool(
    "gc-gwlinkstraffictest",
    "test transfers over gateway links",
    "Sends 64 KB from every tile of the first IPU of each rack to that of the next and "
    "back, and checks what arrived. One round is really moved; the duration is that of "
    "the modelled gateways. One process tests all racks: virtual gateways need none on "
    "each side.",
    add_arguments,
    run,
    ("POPPLE_TARGET=bow-pod128 gc-gwlinkstraffictest",),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
