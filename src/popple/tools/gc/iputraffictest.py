"""`gc-iputraffictest`: tests transfers between IPUs over their links."""

from __future__ import annotations

import itertools
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from popple.device import Lease, Pod, find_machine, read_telemetry
from popple.device.attributes import render_watts
from popple.device.faults import FaultInjector
from popple.errors import DeviceError, UsageError
from popple.target import System
from popple.tools.gc.devices import hold_chips, read_device_options
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

BYTES_PER_TILE = 64 * 1024


@dataclass(frozen=True)
class Traffic:
    """Transfers both ways between two IPUs."""

    device0: int
    device1: int
    num_bytes: int
    seconds: float
    errors: int
    watts: float

    @property
    def gigabytes_per_second(self) -> float:
        """Both directions together."""
        return self.num_bytes / self.seconds / 1e9


def add_arguments(parser: ArgumentParser) -> None:
    """Which IPUs, how much."""
    add_json_option(parser)
    parser.add_argument("--device0", type=int, metavar="ID", help="one IPU [0]")
    parser.add_argument("--device1", type=int, metavar="ID", help="the other [1]")
    parser.add_argument(
        "--all-links", action="store_true", help="test all neighbouring IPUs"
    )
    parser.add_argument(
        "-i",
        "--iterations",
        type=positive,
        default=1000,
        metavar="N",
        help="transfers of 64 KB per tile each way [1000]",
    )
    parser.add_argument(
        "--forever", action="store_true", help="go on until interrupted; not with -j"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="say more")


def run(arguments: Namespace) -> int:
    """Test one pair or all neighbours."""
    if arguments.forever and arguments.json_output:
        raise UsageError("--forever has no end at which JSON could be printed.")
    pairs = choose_pairs(find_machine().system, arguments)
    injector = FaultInjector(read_device_options())
    errors = 0
    with hold_chips({chip for pair in pairs for chip in pair}) as leases:
        try:
            for number in itertools.count():
                if number and not arguments.forever:
                    break
                found = [_test(pair, arguments, injector, leases) for pair in pairs]
                errors += sum(traffic.errors for traffic in found)
                _show(found, arguments)
        except KeyboardInterrupt:
            print("\nInterrupted.")
    return FAILED if errors else PASSED


def choose_pairs(system: System, arguments: Namespace) -> list[tuple[int, int]]:
    """The pair that is named, or all neighbours in the order of the links."""
    order = system.device_order or tuple(range(system.num_chips))
    pairs = [_read_pair(arguments)]
    if arguments.all_links:
        pairs = list(itertools.pairwise(order))
    if not pairs:
        raise UsageError(f"{system.name} has one IPU: there are no links to test.")
    for chip_id in (chip for pair in pairs for chip in pair):
        if not 0 <= chip_id < system.num_chips:
            raise DeviceError(
                f"There is no single IPU {chip_id}.",
                remedy=f"The ids of single IPUs are 0 to {system.num_chips - 1}.",
            )
    return pairs


def _read_pair(arguments: Namespace) -> tuple[int, int]:
    first = 0 if arguments.device0 is None else arguments.device0
    second = first ^ 1 if arguments.device1 is None else arguments.device1
    if first == second:
        raise UsageError(
            f"Both ends are device {first}, and a virtual IPU has no loopback.",
            remedy="Name two IPUs with --device0 and --device1.",
        )
    return first, second


def _test(
    pair: tuple[int, int],
    arguments: Namespace,
    injector: FaultInjector,
    leases: dict[int, Lease],
) -> Traffic:
    from popple.tools.gc.traffic import move_words, position_of, time_links

    machine = leases[pair[0]].machine
    system = machine.system
    each = BYTES_PER_TILE * system.chip.num_tiles
    errors = sum(move_words(each, end, injector.strike("link", end)) for end in (0, 1))
    places = (position_of(system, pair[0]), position_of(system, pair[1]))
    seconds = time_links(system, [places], BYTES_PER_TILE, arguments.iterations)
    return Traffic(
        *pair, 2 * each * arguments.iterations, seconds, errors, _read_watts(leases)
    )


def _read_watts(leases: dict[int, Lease]) -> float:
    machine = next(iter(leases.values())).machine
    holders = {holder.chip_id: holder for holder in Pod(machine).holders()}
    now = time.time()
    return sum(
        read_telemetry(machine, c, holders.get(c), now).ipu_power_w for c in leases
    )


def _describe(found: Sequence[Traffic]) -> Json:
    rows: list[Json] = [
        {
            "boards": "1" if traffic.device0 // 2 == traffic.device1 // 2 else "2",
            "device0": traffic.device0,
            "device1": traffic.device1,
            "duration_sec": traffic.seconds,
            "kbytes_transferred": traffic.num_bytes // 1024,
            "gbytes_transferred": traffic.num_bytes / 1e9,
            "gbps": traffic.gigabytes_per_second,
            "errors": traffic.errors,
            "power": render_watts(traffic.watts),
        }
        for traffic in found
    ]
    return {"tile_to_tile": rows[0] if len(rows) == 1 else rows}


def _show(found: Sequence[Traffic], arguments: Namespace) -> None:
    if arguments.json_output:
        print_json(_describe(found))
        return
    for traffic in found:
        ends = f"IPU {traffic.device0} <-> IPU {traffic.device1}"
        rate = f"{traffic.gigabytes_per_second:.2f} GB/s both ways"
        more = f", {traffic.num_bytes} bytes in {traffic.seconds:.6f} s, modelled"
        shown = more if arguments.verbose else ""
        print(f"{ends}: {rate}, {traffic.errors} errors{shown}", flush=True)


TOOL = Tool(
    "gc-iputraffictest",
    "test transfers between IPUs",
    "Sends 64 KB from every tile of one IPU to the other and back, and checks what "
    "arrived. One round is really moved, in the memory of this computer; the duration "
    "of all rounds is that of the modelled links between the two. Faults can be "
    "simulated with GCDA_OPTIONS.",
    add_arguments,
    run,
    ("gc-iputraffictest --device0 0 --device1 1 -j", "gc-iputraffictest --all-links"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
