"""`gc-monitor`: who uses which IPU, without disturbing anybody."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

from popple.device import Holder, list_board
from popple.device.boards import is_fabric, site_of
from popple.device.views import View, look
from popple.tools.gc.boxes import draw_box, draw_rule
from popple.tools.gc.tool import (
    PASSED,
    Json,
    Tool,
    add_json_option,
    print_json,
    run_tool,
)

Attributes = Mapping[str, str]

_FABRIC_COLUMNS = (
    ("IPU-M", 13, "ipuof host"),
    ("Serial", 20, "board serial number"),
    ("IPU-M SW", 8, "gateway software version"),
    ("Server version", 14, "ipuof server version"),
    ("ICU FW", 10, "firmware version"),
    ("Type", 6, "board type"),
    ("ID", 4, "id"),
    ("IPU#", 6, "board ipu index"),
    ("Routing", 7, "ipuof routing type"),
)
_CARD_COLUMNS = (
    ("Card", 6, "pcie physical slot"),
    ("Serial", 20, "board serial number"),
    ("Driver", 10, "driver version"),
    ("ICU FW", 10, "firmware version"),
    ("Type", 6, "board type"),
    ("ID", 4, "id"),
    ("PCI Domain", 16, "pci id"),
    ("NUMA", 6, "numa node"),
)
_PROCESS_COLUMNS = (
    ("PID", 8),
    ("Command", 41),
    ("Time", 8),
    ("User", 12),
    ("ID", 4),
    ("Clock", 10),
    ("Temp", 8),
    ("Temp", 8),
    ("Power", 8),
)
# Widths of the headings over the columns of the process, its IPU and its board.
_PROCESS_HEADS = (72, 24, 17)


def add_arguments(parser: ArgumentParser) -> None:
    """What to show."""
    add_json_option(parser)
    parser.add_argument(
        "--no-card-info", action="store_true", help="show processes only"
    )
    parser.add_argument(
        "--all-partitions", action="store_true", help="show all partitions"
    )


def run(arguments: Namespace) -> int:
    """Print tables of cards and processes, or both as JSON."""
    views = look(at_all=arguments.all_partitions)
    if arguments.json_output:
        print_json(describe_views(views))
        return PASSED
    for view in views:
        chips = view.describe_chips()
        if not arguments.no_card_info:
            _print(draw_cards(view, chips))
        _print(draw_processes(view, chips))
    return PASSED


def draw_cards(view: View, chips: Sequence[Attributes]) -> Iterator[str]:
    """The IPUs of a partition, with a rule after each machine or card."""
    fabric = is_fabric(view.machine.system)
    columns = _FABRIC_COLUMNS if fabric else _CARD_COLUMNS
    widths = [width for _, width, _ in columns]
    total = sum(widths) + len(widths) - 1
    first = 15
    title = _name_machine(view)
    yield draw_rule([first, total - first - 1])
    yield draw_box(["gc-monitor", title], [first, total - first - 1])
    yield draw_rule(widths)
    yield draw_box([heading for heading, _, _ in columns], widths)
    yield draw_rule(widths)
    for _, group in groupby(chips, key=lambda chip: chip[columns[0][2]]):
        for chip in group:
            yield draw_box([chip[key] for _, _, key in columns], widths)
        yield draw_rule(widths)


def draw_processes(view: View, chips: Sequence[Attributes]) -> Iterator[str]:
    """Who uses which IPU; a board's sensors are shown once per board."""
    widths = [width for _, width in _PROCESS_COLUMNS]
    if not view.holders:
        whole = [sum(_PROCESS_HEADS) + 2]
        yield draw_rule(whole)
        yield draw_box([f"No attached processes in partition {view.name}"], whole)
        yield draw_rule(whole)
        return
    title = f"Attached processes in partition {view.name}"
    yield draw_rule(_PROCESS_HEADS)
    yield draw_box([title, "IPU", "Board"], _PROCESS_HEADS)
    yield draw_rule(widths)
    yield draw_box([heading for heading, _ in _PROCESS_COLUMNS], widths)
    yield draw_rule(widths)
    by_board = groupby(
        view.holders, key=lambda h: list_board(view.machine, h.chip_id)[0]
    )
    for _, group in by_board:
        for row, holder in enumerate(group):
            cells = _row_of(view, holder, chips[holder.chip_id], is_first=not row)
            yield draw_box(cells, widths)
        yield draw_rule(widths)


def describe_views(views: Sequence[View]) -> Json:
    """Cards with their IPUs; an IPU in use has a PID."""
    return {
        "partitions": [view.name for view in views],
        "cards": [card for view in views for card in _describe_cards(view)],
    }


def render_time(seconds: float) -> str:
    """`4m1s`: how long a process has held an IPU."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s"))
    shown = [f"{count}{unit}" for count, unit in parts if count]
    # Two units are as much as the column holds.
    return "".join(shown[:2]) or "0s"


def _name_machine(view: View) -> str:
    system = view.machine.system
    if not is_fabric(system):
        cards = len({list_board(view.machine, c) for c in range(system.num_chips)})
        return f"{view.name}: {cards} cards with {system.num_chips} IPUs"
    state = " [active]" if view.is_active else ""
    count = f"{system.num_chips} reconfigurable IPUs"
    return f"Partition: {view.name} (gcd:0){state} has {count}"


def _row_of(
    view: View, holder: Holder, chip: Attributes, *, is_first: bool
) -> list[str]:
    started = datetime.fromisoformat(holder.since).timestamp()
    process = [chip["user process id"], chip["user executable"]]
    process += [render_time(view.now - started), chip["user name"]]
    ipu = [chip["id"], chip["clock"], chip["average die temp"]]
    board = [chip["average board temp"], chip["total board power"]]
    return [*process, *ipu, *(board if is_first else ["", ""])]


def _describe_cards(view: View) -> Iterator[Json]:
    chips = view.describe_chips()
    system = view.machine.system
    holders = {holder.chip_id: holder for holder in view.holders}
    size = system.chips_per_machine if is_fabric(system) else system.chips_per_board
    for first in range(0, len(chips), size):
        card = chips[first]
        yield {
            "partition": view.name,
            "type": card["board type"],
            "serial": card["board serial number"],
            "host": site_of(system, view.machine.name, first).server,
            "firmware": card["firmware version"],
            "ipus": [
                _describe_ipu(view, chip, holders.get(int(chip["id"])))
                for chip in chips[first : first + size]
            ],
        }


def _describe_ipu(view: View, chip: Attributes, holder: Holder | None) -> Json:
    found: dict[str, Json] = {
        "id": chip["id"],
        "index": chip["board ipu index"],
        "pci id": chip["pci id"],
        "clock": chip["clock"],
        "temp": chip["average die temp"],
        "board temp": chip["average board temp"],
        "power": chip["ipu power"],
        "board power": chip["total board power"],
        "utilisation": chip["ipu utilisation"],
    }
    if holder is not None:
        started = datetime.fromisoformat(holder.since).timestamp()
        found["PID"] = chip["user process id"]
        found["command"] = chip["user executable"]
        found["time"] = render_time(view.now - started)
        found["user"] = chip["user name"]
    return found


def _print(lines: Iterator[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


TOOL = Tool(
    "gc-monitor",
    "show who uses which IPU",
    "Shows the IPUs of the active partition and the processes that use them, without "
    "disturbing either. Programs that found the default machine full run on copies of "
    "it, which are shown as well. Clock, temperature and power are modelled from what "
    "the programs run.",
    add_arguments,
    run,
    ("gc-monitor", "watch -n 2 gc-monitor", "gc-monitor --no-card-info | grep PID"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
