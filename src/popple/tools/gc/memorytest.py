"""`gc-memorytest`: writes and verifies the memory of all tiles of a device."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from popple.target import Chip
from popple.tools.gc.devices import report_event, take_bench
from popple.tools.gc.tool import (
    FAILED,
    PASSED,
    Json,
    Tool,
    add_device_option,
    add_json_option,
    positive,
    print_json,
    run_tool,
)
from popple.units import render_bytes

if TYPE_CHECKING:
    from popple.tools.gc.memory import BadTile

Found: TypeAlias = "dict[int, dict[int, BadTile]]"
"""Bad tiles by chip and by tile"""


def add_arguments(parser: ArgumentParser) -> None:
    """Which device, how often."""
    add_device_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "-i",
        "--iterations",
        type=positive,
        default=1,
        metavar="N",
        help="test so often, with a reset of the device before each [1]",
    )


def run(arguments: Namespace) -> int:
    """Test each IPU of the device and name its bad tiles."""
    # Arrays of tile memory need numpy, which --help does not.
    from popple.tools.gc.memory import find_bad_tiles

    found: Found = {}
    with take_bench(arguments.device_id) as bench:
        for _ in range(arguments.iterations):
            bench.injector.reset()
            for ipu, chip_id in enumerate(bench.chip_ids):
                bad = find_bad_tiles(bench.chip, ipu, bench.injector)
                found.setdefault(chip_id, {}).update((b.tile, b) for b in bad)
        is_bad = any(found.values())
        if is_bad:
            report_event(bench, f"Memory test failed: {_list_tiles(found)}.")
        if arguments.json_output:
            print_json(_describe(bench.chip, found))
        else:
            _print_lines(bench.chip, found)
    return FAILED if is_bad else PASSED


def _describe(chip: Chip, found: Found) -> Json:
    from popple.tools.gc.memory import ADDRESSES, CONSTANTS

    ipus: list[Json] = [
        {
            "id": chip_id,
            "tiles": chip.num_tiles,
            "bytes_per_tile": chip.tile_memory_bytes,
            "bad_tiles": [
                {"tile": b.tile, "address": f"0x{b.address:x}", "pattern": b.pattern}
                for b in bad.values()
            ],
        }
        for chip_id, bad in found.items()
    ]
    result = _name_result(found)
    patterns = [*CONSTANTS, ADDRESSES]
    return {"ipus": ipus, "patterns": patterns, "overall_result": result}


def _print_lines(chip: Chip, found: Found) -> None:
    size = render_bytes(chip.num_tiles * chip.tile_memory_bytes)
    for chip_id, bad in found.items():
        print(f"IPU {chip_id}: {chip.num_tiles} tiles, {size}: {len(bad)} bad tiles")
        for b in bad.values():
            print(f"  tile {b.tile}: address 0x{b.address:x}, pattern {b.pattern}")
    print(f"Memory test {_name_result(found)}")


def _name_result(found: Found) -> str:
    return "failed" if any(found.values()) else "passed"


def _list_tiles(found: Found) -> str:
    return ", ".join(
        f"IPU {chip_id} tile {tile}" for chip_id, bad in found.items() for tile in bad
    )


TOOL = Tool(
    "gc-memorytest",
    "test the memory of all tiles",
    "Writes patterns into the memory of every tile of the device, reads them back and "
    "names the tiles that gave back something else. The memory is that of this "
    "computer; faults can be simulated with GCDA_OPTIONS.",
    add_arguments,
    run,
    ("gc-memorytest -d 0", "gc-memorytest -d 30 -j"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
