"""`gc-links`: shows the links of the IPUs of a partition and whether they work."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from popple.device import Pod, find_machine
from popple.device.faults import FaultInjector
from popple.target import System
from popple.tools.gc.devices import read_device_options
from popple.tools.gc.tool import (
    FAILED,
    PASSED,
    Json,
    Tool,
    add_json_option,
    positive,
    print_json,
    run_tool,
)

_TRAINED = "trained"
_LANES = 8


@dataclass(frozen=True)
class LinkState:
    """One link of a chip: its channel, where it leads and how it is."""

    chip_id: int
    channel: str
    partner: int | None
    status: str


def add_arguments(parser: ArgumentParser) -> None:
    """How often; text or JSON."""
    add_json_option(parser)
    parser.add_argument(
        "-i",
        "--iterations",
        type=positive,
        default=1,
        metavar="N",
        help="reset and look so often [1]",
    )


def run(arguments: Namespace) -> int:
    """Look at all links of the active partition."""
    injector = FaultInjector(read_device_options())
    system = Pod(find_machine()).system
    rounds = [list_links(system, injector) for _ in range(arguments.iterations)]
    failures = sum(any(map(_is_failed, links)) for links in rounds)
    result = "failed" if failures else "passed"
    if arguments.json_output:
        found: dict[str, Json] = {
            f"iteration_{number}": _describe(links)
            for number, links in enumerate(rounds)
        }
        found["requested_iterations"] = arguments.iterations
        found["iterations_with_failures"] = failures
        found["overall_result"] = result
        print_json(found)
    else:
        for link in rounds[-1]:
            print(_render(link))
        print(f"Links {result}")
    return FAILED if failures else PASSED


def list_links(system: System, injector: FaultInjector) -> tuple[LinkState, ...]:
    """The links of every chip, in the order of the chips."""
    injector.reset()
    broken = {(fault.ipu, fault.link) for fault in injector.strike("link")}
    order = system.device_order or tuple(range(system.num_chips))
    return tuple(
        link
        for chip_id in range(system.num_chips)
        for link in _links_of(system, order, chip_id, broken)
    )


def _links_of(
    system: System, order: Sequence[int], chip_id: int, broken: set[tuple[int, int]]
) -> Iterator[LinkState]:
    """Most links lead over the rung of the ladder, the others along its rails."""
    place = order.index(chip_id)
    count = system.chip.num_links
    rail = max(1, count // 5)
    places = [place ^ 1] * (count - 2 * rail) + [place - 2] * rail + [place + 2] * rail
    first = place - place % system.rack_chips
    for index, each in enumerate(places):
        there = each
        if system.topology == "torus":
            there = first + (each - first) % system.rack_chips
        # Links within a rack; beyond it lead those of the gateways.
        same_rack = 0 <= there - first < system.rack_chips
        is_there = 0 <= there < system.num_chips and same_rack
        status = _TRAINED if is_there else "not connected"
        if (chip_id, index) in broken:
            status = "failed"
        partner = order[there] if is_there else None
        yield LinkState(chip_id, _channel(index, count), partner, status)


def _channel(index: int, count: int) -> str:
    side = "W" if index < count // 2 else "E"
    number, half = divmod(index % max(1, count // 2), 2)
    return f"NLC_{side}_{number}{'AB'[half]}"


def _is_failed(link: LinkState) -> bool:
    return link.status == "failed"


def _describe(links: Sequence[LinkState]) -> Json:
    failed = sum(map(_is_failed, links))
    return {
        "warning": "Links already trained - no training performed",
        "overall_result": "failed" if failed else "passed",
        "discovery_method": "VIRM",
        "num ipus": len({link.chip_id for link in links}),
        "training fails": failed,
        "ipus": [
            {
                "id": chip_id,
                "links": [_describe_link(k) for k in links if k.chip_id == chip_id],
            }
            for chip_id in sorted({link.chip_id for link in links})
        ],
    }


def _describe_link(link: LinkState) -> Json:
    found: dict[str, Json] = {"channel": link.channel, "status": link.status}
    if link.partner is not None:
        found["to ipu"] = link.partner
        found["lanes"] = _LANES
        found["gen"] = 4
    return found


def _render(link: LinkState) -> str:
    goal = "" if link.partner is None else f" to IPU {link.partner}"
    return f"IPU {link.chip_id}: {link.channel}{goal}: {link.status}"


TOOL = Tool(
    "gc-links",
    "show the links between IPUs",
    "Lists the IPU-Links of every IPU of the active partition, where they lead and "
    "whether they work. Virtual links need no training. A broken link can be "
    "simulated with GCDA_OPTIONS.",
    add_arguments,
    run,
    ("gc-links", "gc-links -j"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
