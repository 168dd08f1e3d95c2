"""`gc-hostsynclatencytest`: how long a sync of an IPU with the host takes."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

from popple.errors import UsageError
from popple.target import System
from popple.tools.gc.devices import take_bench
from popple.tools.gc.tool import (
    PASSED,
    Json,
    Tool,
    add_device_option,
    add_json_option,
    as_text,
    positive,
    print_json,
    run_tool,
)

# How often the host link is crossed until both sides know of each other: a posted
# write tells the host by itself; a host that polls asks, and gets an answer; a hybrid
# waits for the write before it asks.
_CROSSINGS: Mapping[str, float] = {"posted": 1.0, "polling": 2.0, "hybrid": 1.5}
_MAX_DELAY = 20


def add_arguments(parser: ArgumentParser) -> None:
    """The documented options."""
    add_device_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "--which-hsp",
        choices=("hsp1", "hsp2", "both"),
        default="hsp1",
        help="the sync proxy of the host [hsp1]",
    )
    parser.add_argument(
        "-m",
        "--sync-mode",
        choices=tuple(_CROSSINGS),
        help="how the host learns of a sync [posted if GCDA_OPTIONS says so, polling]",
    )
    parser.add_argument(
        "--split-increment", action="store_true", help="count marks one by one"
    )
    for flags, default, help_text in (
        (("-i", "--iterations"), 1, "how often [1]"),
        (("--delay-val",), 5, "cycles of a delay, at most 20 [5]"),
        (("--num-delays",), 32, "number of delays [32]"),
        (("--mark-count",), 4095, "syncs that are counted [4095]"),
    ):
        parser.add_argument(
            *flags, type=positive, default=default, metavar="N", help=help_text
        )


def run(arguments: Namespace) -> int:
    """Model the syncs and print the mean."""
    if arguments.delay_val > _MAX_DELAY:
        raise UsageError(f"--delay-val is {arguments.delay_val}; 20 is the most.")
    with take_bench(arguments.device_id) as bench:
        posted = bench.options.force_posted_sync
        mode = arguments.sync_mode or ("posted" if posted else "polling")
        found: dict[str, Json] = {
            "ipu_id": bench.lease.device.id,
            "sync_mode": mode,
            "hsp": arguments.which_hsp,
            "delay_cycles": arguments.delay_val,
            "num_delays": arguments.num_delays,
            "iterations": arguments.iterations,
            "mark_count": arguments.mark_count,
            "split_increments": arguments.split_increment,
            "time_to_sync_us": time_to_sync(bench.system, len(bench.chip_ids), mode),
            "result": "passed",
        }
    if arguments.json_output:
        print_json(found)
        return PASSED
    for key, value in found.items():
        print(f"o {key.replace('_', ' ')}: {as_text(value)}")
    return PASSED


def time_to_sync(system: System, num_chips: int, mode: str) -> float:
    """Microseconds from the last tile's arrival until the host goes on."""
    from popple.program import SyncKind
    from popple.sim import sync_cycles
    from popple.target import Target

    cycles = sync_cycles(SyncKind.EXTERNAL, Target(system, num_chips))
    tiles = cycles / system.chip.clock_hz * 1e6
    return tiles + _CROSSINGS[mode] * system.host_latency_ns / 1e3


TOOL = Tool(
    "gc-hostsynclatencytest",
    "show the latency of syncs with the host",
    "Prints how long a sync between host and IPU takes on the modelled machine, from "
    "its constants for syncs and for the host link. Nothing is measured: a virtual "
    "IPU shares the clock of this computer.",
    add_arguments,
    run,
    ("gc-hostsynclatencytest -d 0 -j", "gc-hostsynclatencytest -m posted"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
