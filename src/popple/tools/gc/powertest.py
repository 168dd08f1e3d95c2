"""`gc-powertest`: loads a device and shows power and temperature until interrupted."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from popple.device import Pod, Telemetry, read_telemetry
from popple.device.attributes import render_clock
from popple.tools.gc.devices import Bench, take_bench
from popple.tools.gc.tool import PASSED, Tool, add_device_option, positive, run_tool


def add_arguments(parser: ArgumentParser) -> None:
    """Which device, how long."""
    add_device_option(parser)
    parser.add_argument(
        "-n", "--rows", type=positive, metavar="N", help="stop after so many rows"
    )
    parser.add_argument(
        "-s",
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="time between rows [1]",
    )


def run(arguments: Namespace) -> int:
    """Hold the device as busy as it can be, and print a row at a time."""
    with take_bench(arguments.device_id) as bench:
        print("|        power (IPUs, total)        | die | board, clock |")
        try:
            _print_rows(bench, arguments.rows, max(0.0, arguments.interval))
        except KeyboardInterrupt:
            # How the documented tool is ended; its test has passed until then.
            print("\nInterrupted.")
    return PASSED


def render_row(number: int, sensors: Sequence[Telemetry]) -> str:
    """One row: power of each IPU and of its boards, temperatures, clock."""
    powers = "  ".join(f"{s.ipu_power_w:06.2f}W" for s in sensors)
    total = sum(s.ipu_power_w for s in sensors)
    dies = " ".join(f"{s.die_temp_c:03.0f}C" for s in sensors)
    boards = " ".join(f"{s.board_temp_c:05.1f}C" for s in sensors)
    clock = render_clock(sensors[0].clock_hz)
    return f"| {number:04d}: {powers}  T{total:06.2f}W | {dies} | {boards} {clock} |"


def _print_rows(bench: Bench, limit: int | None, interval: float) -> None:
    number = 0
    while limit is None or number < limit:
        if number:
            time.sleep(interval)
        number += 1
        print(render_row(number, _read_sensors(bench)), flush=True)


def _read_sensors(bench: Bench) -> list[Telemetry]:
    holders = {holder.chip_id: holder for holder in Pod(bench.machine).holders()}
    now = time.time()
    return [
        read_telemetry(bench.machine, c, holders.get(c), now, holders.values())
        for c in bench.chip_ids
    ]


TOOL = Tool(
    "gc-powertest",
    "load IPUs and show their power and temperature",
    "Holds the device, counts as a program that runs on all tiles without a pause, and "
    "prints a row of sensors every second until Ctrl-C. Power and temperature are "
    "modelled from that load; nothing is computed, so the test costs this computer "
    "nothing.",
    add_arguments,
    run,
    ("gc-powertest -d 0",),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
