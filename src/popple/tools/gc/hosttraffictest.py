"""`gc-hosttraffictest`: tests transfers between the host and a device, both ways."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import cast

from popple.errors import UsageError
from popple.tools.gc.devices import Bench, report_event, take_bench
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

_BLOCK_BYTES = 64
# Name of a test -> what it does, in the words of the stream directions.
_TESTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "host_from_buffer_from_tile": ("IPU to host", ("toHost",)),
    "host_to_buffer_to_tile": ("host to IPU", ("fromHost",)),
    "host_to_buffer_from_tile": ("both ways at once", ("fromHost", "toHost")),
}


def add_arguments(parser: ArgumentParser) -> None:
    """Which device, how much."""
    add_device_option(parser)
    add_json_option(parser)
    for flags, default, help_text in (
        (("-i", "--iterations"), 1000, "transfers of each kind [1000]"),
        (("-t", "--tiles"), 32, "tiles per IPU that take part [32]"),
        (("-s", "--transfer-size"), 1024, "blocks of 64 bytes per transfer [1024]"),
    ):
        parser.add_argument(
            *flags, type=positive, default=default, metavar="N", help=help_text
        )


def run(arguments: Namespace) -> int:
    """Move data both ways, check them, and time them on the model."""
    with take_bench(arguments.device_id) as bench:
        if arguments.tiles > bench.chip.num_tiles:
            raise UsageError(f"An IPU has {bench.chip.num_tiles} tiles.")
        tests = {name: _test(bench, name, arguments) for name in _TESTS}
        errors = sum(int(cast("int", test["errors"])) for test in tests.values())
        if errors:
            report_event(bench, f"Host traffic test failed: {errors} wrong words.")
        if arguments.json_output:
            print_json(_describe(bench, tests, arguments))
        else:
            _print_lines(tests, errors)
    return FAILED if errors else PASSED


def _test(bench: Bench, name: str, arguments: Namespace) -> dict[str, Json]:
    from popple.program import Direction
    from popple.tools.gc.traffic import move_words, time_host

    words, ways = _TESTS[name]
    size = arguments.transfer_size * _BLOCK_BYTES
    tiles, rounds = arguments.tiles, arguments.iterations
    directions = [Direction(way) for way in ways]
    seconds = time_host(bench.system, directions, size, tiles, rounds)
    errors = sum(
        move_words(size * tiles, ipu, bench.injector.strike("host", ipu))
        for ipu in range(len(bench.chip_ids))
        for _ in ways
    )
    # Chips share nothing on their way to the host, but for the network of a pod, whose
    # share the rate of one chip is.
    num_bytes = size * tiles * rounds * len(ways) * len(bench.chip_ids)
    return {
        "description": words,
        "duration_seconds": seconds,
        "host_data_transferred_bytes": num_bytes,
        "host_transfer_speed_gbps": num_bytes / seconds / 1e9,
        "tile_data_transferred_bytes": num_bytes,
        "tile_transfer_speed_gbps": num_bytes / seconds / 1e9,
        "errors": errors,
    }


def _describe(
    bench: Bench, tests: Mapping[str, Json], arguments: Namespace
) -> Mapping[str, Json]:
    configuration: dict[str, Json] = {
        "number_of_ipus": len(bench.chip_ids),
        "tile_transfers_enabled": True,
        "tiles_per_ipu": arguments.tiles,
        "transfer_size_64byte_blocks": arguments.transfer_size,
        "iterations": arguments.iterations,
        "host_transfers_enabled": True,
    }
    return {"configuration": configuration, "repeat_0": tests}


def _print_lines(tests: Mapping[str, Mapping[str, Json]], errors: int) -> None:
    for test in tests.values():
        rate = cast("float", test["host_transfer_speed_gbps"])
        print(f"{test['description']}: {rate:.2f} GB/s, {test['errors']} errors")
    print(f"Host traffic test {'failed' if errors else 'passed'}")


TOOL = Tool(
    "gc-hosttraffictest",
    "test transfers between host and IPU",
    "Sends blocks from tiles to the host, from the host to tiles and both at once, and "
    "checks what arrived. One round is really moved, in the memory of this computer; "
    "the duration of all rounds is that of the modelled host link.",
    add_arguments,
    run,
    ("gc-hosttraffictest -d 0", "gc-hosttraffictest -d 0 -j"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
