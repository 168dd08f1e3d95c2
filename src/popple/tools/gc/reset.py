"""`gc-reset`: puts a device into its first state, if nobody uses it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from popple.device import Pod, find_machine
from popple.tools.gc.devices import take_device
from popple.tools.gc.tool import PASSED, Tool, run_tool


def add_arguments(parser: ArgumentParser) -> None:
    """Which device; all of them without one."""
    parser.add_argument(
        "-d",
        "--device-id",
        type=int,
        metavar="ID",
        help="the device, one IPU or a group; otherwise all IPUs",
    )


def run(arguments: Namespace) -> int:
    """Hold the device once, which clears what the last holder left, and let it go."""
    wanted = arguments.device_id
    if wanted is None:
        wanted = len(Pod(find_machine()).devices) - 1
    with take_device(wanted) as lease:
        count = lease.device.num_chips
        print(f"Device {lease.device.id} was reset ({count} IPU{'s' * (count > 1)}).")
    return PASSED


TOOL = Tool(
    "gc-reset",
    "reset IPU devices",
    "Resets a device that nobody uses. A virtual device keeps no contents: what is "
    "cleared are the counters and records that its last user left, so that its "
    "telemetry is that of an idle device.",
    add_arguments,
    run,
    ("gc-reset -d 0", "gc-reset"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
