"""`vipu`: partitions of virtual pods, in the words of the V-IPU command line."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from popple._version import __version__
from popple.device import (
    Machine,
    Partition,
    create_partition,
    find_machine,
    get_partition,
    list_partitions,
    remove_partition,
)
from popple.device.boards import board_type, site_of
from popple.device.views import View, look
from popple.errors import UsageError
from popple.files import write_atomically
from popple.tools.gc.tool import PASSED, Tool, positive, run_tool
from popple.units import ceil_div

_PORT = "8090"
# Both forms are documented.
_THINGS = ("partition", "partitions", "allocation", "allocations", "ipu-attrs")


def add_arguments(parser: ArgumentParser) -> None:
    """A verb, a thing, its name, and options of some of the verbs."""
    parser.add_argument(
        "verb",
        nargs="?",
        choices=("list", "create", "get", "remove"),
        help="what to do: list, create, get or remove",
    )
    parser.add_argument(
        "thing",
        nargs="?",
        choices=_THINGS,
        help="partitions, allocations or ipu-attrs",
    )
    parser.add_argument("name", nargs="?", help="name of a partition")
    parser.add_argument("-s", "--size", type=positive, metavar="N", help="IPUs")
    parser.add_argument(
        "--force", action="store_true", help="remove a partition that is in use"
    )
    parser.add_argument(
        "--reconfigurable",
        action="store_true",
        help="accepted: every virtual partition is",
    )
    parser.add_argument(
        "--allocation", metavar="ID", help="accepted: there is one allocation"
    )
    parser.add_argument("--cluster", metavar="ID", help="accepted, as --allocation")
    parser.add_argument(
        "--gcds", type=int, choices=(1,), default=1, help="graph compilation domains"
    )
    parser.add_argument("--gcd", type=int, choices=(0,), help="which of them")
    parser.add_argument(
        "--ipuof-configs", action="store_true", help="get: print the IPUoF file"
    )
    parser.add_argument("-H", "--api-host", help="accepted: there is no server")
    parser.add_argument("-p", "--api-port", help="accepted: there is no server")
    parser.add_argument(
        "--server-version", action="store_true", help="show version and host"
    )


def run(arguments: Namespace) -> int:
    """Do what verb and thing say."""
    if arguments.server_version:
        host = arguments.api_host or os.environ.get("VIPU_CLI_API_HOST", "localhost")
        print(f"version: {__version__}\nhost: {host}:{arguments.api_port or _PORT}")
        return PASSED
    if arguments.verb is None or arguments.thing is None:
        raise UsageError(
            "Say what to do: 'vipu list partitions'.", remedy="See vipu --help."
        )
    key = (arguments.verb, arguments.thing.removesuffix("s"))
    if key not in _ACTIONS:
        known = ", ".join(f"{verb} {thing}" for verb, thing in _ACTIONS)
        raise UsageError(
            f"Cannot {arguments.verb} {arguments.thing}.", remedy=f"Known: {known}."
        )
    _ACTIONS[key](arguments)
    return PASSED


def config_path(name: str) -> Path:
    """Where V-IPU leaves the file by which programs find a partition."""
    return Path.home() / ".ipuof.conf.d" / f"{name}_gcd0_ipuof.conf"


def describe_config(partition: Partition) -> str:
    """The contents of that file."""
    machine = partition.machine
    sites = (
        site_of(machine.system, machine.name, chip_id)
        for chip_id in range(machine.system.num_chips)
    )
    devices = [
        {
            "board_type": board_type(machine.system),
            "ip": site.server,
            "ipu_index": site.ipu_number,
            "partition_id": partition.name,
            "routing_id": 0,
        }
        for site in sites
    ]
    attributes = {"partition": partition.name, "is_reconfigurable": True}
    return json.dumps({"attributes": attributes, "devices": devices}, indent=2)


def _create(arguments: Namespace) -> None:
    name = _need_name(arguments)
    if arguments.size is None:
        raise UsageError("The size is missing.", remedy="Add --size N.")
    partition = create_partition(name, arguments.size)
    path = config_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, describe_config(partition))
    print(f"create partition ({name}): success.")


def _remove(arguments: Namespace) -> None:
    name = _need_name(arguments)
    remove_partition(name, force=arguments.force)
    config_path(name).unlink(missing_ok=True)
    print(f"remove partition ({name}): success.")


def _get(arguments: Namespace) -> None:
    partition = get_partition(_need_name(arguments))
    if arguments.ipuof_configs:
        print(describe_config(partition))
        return
    _print_partitions([partition])


def _list_partitions(arguments: Namespace) -> None:
    _print_partitions(list_partitions())


def _list_allocations(arguments: Namespace) -> None:
    machine = find_machine()
    agents = " ".join(_list_agents(machine))
    _print_table(("Allocation ID", "Agents"), [(_allocation(machine.name), agents)])


def _list_attributes(arguments: Namespace) -> None:
    """The attributes of all IPUs; agent and IPU are named once."""
    rows: list[tuple[str, ...]] = []
    for view in look(at_all=True):
        rows += _attribute_rows(view)
    _print_table(("Agent", "IPU", "Attribute", "Value"), rows)


def _attribute_rows(view: View) -> Iterable[tuple[str, ...]]:
    size = view.machine.system.chips_per_machine
    for chip in view.describe_chips():
        number = int(chip["id"])
        label = (f"ag{number // size}", str(number % size))
        for key, value in chip.items():
            yield (*label, key, value)
            label = ("", "")


def _print_partitions(partitions: Iterable[Partition]) -> None:
    header = ("Partition", "Cluster", "ILDs", "GW Routing", "ILD Routing", "Size")
    rows = [
        (
            partition.name,
            partition.pod or partition.machine.system.name,
            "1",
            "DEFAULT",
            "DNC",
            str(partition.num_chips),
            "1",
            "ACTIVE",
        )
        for partition in partitions
    ]
    _print_table((*header, "GCDs", "State"), rows)


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns between bars, rules of dashes above, below and under the header."""
    cells = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        " " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        for row in cells
    ]
    rule = "-" * (max(map(len, lines)) + 1)
    for line in (rule, lines[0], rule, *lines[1:], rule):
        print(line.rstrip())


def _list_agents(machine: Machine) -> list[str]:
    count = ceil_div(machine.system.num_chips, machine.system.chips_per_machine)
    return [f"ag{number}" for number in range(count)]


def _allocation(name: str) -> str:
    return f"alloc-{name}"


def _need_name(arguments: Namespace) -> str:
    if arguments.name is None:
        raise UsageError(
            "The name of the partition is missing.",
            remedy=f"For example: vipu {arguments.verb} partition p1.",
        )
    return arguments.name


_ACTIONS: Mapping[tuple[str, str], Callable[[Namespace], None]] = {
    ("list", "partition"): _list_partitions,
    ("list", "allocation"): _list_allocations,
    ("list", "ipu-attr"): _list_attributes,
    ("create", "partition"): _create,
    ("get", "partition"): _get,
    ("remove", "partition"): _remove,
}

TOOL = Tool(
    "vipu",
    "make and list partitions of virtual pods",
    "A partition is some chips of the pod in force ('popple pod create'), or of a "
    "machine of its own where there is none, that programs see as a system of their "
    "own: set IPUOF_VIPU_API_PARTITION_ID to its name. Its size is a power of two. "
    "There is no server: partitions are files of this user.",
    add_arguments,
    run,
    (
        "vipu create partition p1 --size 4",
        "vipu list partitions",
        "vipu list ipu-attrs",
        "vipu remove partition p1",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
