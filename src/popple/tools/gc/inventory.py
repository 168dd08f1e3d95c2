"""`gc-inventory`: all attributes of all devices, as text or JSON."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from popple.device.views import look
from popple.tools.gc.tool import PASSED, Tool, add_json_option, print_json, run_tool


def add_arguments(parser: ArgumentParser) -> None:
    """Text or JSON, of the active partition or of all."""
    add_json_option(parser)
    parser.add_argument(
        "--all-partitions", action="store_true", help="devices of all partitions"
    )


def run(arguments: Namespace) -> int:
    """Print the attributes of every single device."""
    views = look(at_all=arguments.all_partitions)
    devices = [chip for view in views for chip in view.describe_chips()]
    if arguments.json_output:
        print_json({"devices": devices})
        return PASSED
    for device in devices:
        # Scripts count the lines with `id:`; quoted keys have none.
        print(f"Device (id: {device['id']})")
        for key, value in device.items():
            print(f'  "{key}": "{value}"')
    return PASSED


TOOL = Tool(
    "gc-inventory",
    "list the attributes of all IPU devices",
    "Prints every attribute of every IPU of the active partition: what it is, its "
    "versions, its modelled sensors, and the process that uses it.",
    add_arguments,
    run,
    ("gc-inventory", "gc-inventory -j"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
