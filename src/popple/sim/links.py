"""Time of traffic between chips: routes, shared links, gateways.

Chips form a ladder: 2k and 2k+1 are a rung, chips of equal parity the two rails. A
flow crosses its rung first if it must, then follows the rail, whose ends are joined in
a torus; flows over the same link share it (the routing of the vendor's own model of
several chips, graphcore/poplibs 1.2.0, lib/poplibs_test/Util.cpp). Every replica does
the same at the same time; rings over replicas go both ways round, half of the data
each (lib/popops, collectives). GW-Links join equal machines of neighbouring racks; in a
ring over racks all machines use theirs at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from popple.errors import ProgramError
from popple.program import GlobalExchange
from popple.sim.phases import cycles_of_ns, transfer_cycles
from popple.target import Target
from popple.units import ceil_div

_HOPS_BETWEEN_RACKS = 3
"""To the machine's gateway, over a GW-Link, from the other gateway"""

Link = tuple[int, int]
"""(from chip, to chip), neighbours on the ladder"""


def link_cycles(step: GlobalExchange, target: Target) -> int:
    """Cycles from the sync to the arrival of the last byte."""
    system, chip = target.system, target.chip
    flows = list(_global_flows(step, target.num_chips))
    if not any(num_bytes for _, _, num_bytes in flows):
        return 0
    # A rate of 0 stands for "no links" in a target's file.
    slowest = min(system.link_bytes_per_second, system.neighbour_bytes_per_second)
    if not slowest:
        what = f"{step.name!r} sends between chips, but the target has no links."
        remedy = "Simulate on a system with several chips."
        raise ProgramError(what, where=f"target {system.name!r}", remedy=remedy)
    # A tile feeds the links through its exchange port; data on few tiles are bound by
    # that.
    busiest = max(step.sent_by_tile.maximum, step.received_by_tile.maximum)
    if step.is_between_racks:
        crossing = _gateway_transfer(_bytes_by_machine(step, target), step, target)
        moving = max(crossing, ceil_div(busiest, chip.exchange_bytes_per_cycle))
        latency_ns = system.link_latency_ns * _HOPS_BETWEEN_RACKS
        return moving + cycles_of_ns(latency_ns, chip)
    by_link, by_chip = _loads(flows, step, target)
    moving = max(
        transfer_cycles(by_link, system.neighbour_bytes_per_second, chip),
        transfer_cycles(by_chip, system.link_bytes_per_second, chip),
        _gateway_cycles(step, target),
        ceil_div(busiest, chip.exchange_bytes_per_cycle),
    )
    ring = _ring_chips(target)
    longest = max(sum(1 for _ in route(a, b, ring)) for a, b, _ in flows)
    # A step may state a longer route than its flows show.
    num_hops = max(step.num_hops, longest)
    return moving + cycles_of_ns(system.link_latency_ns * num_hops, chip)


def _ring_chips(target: Target) -> int:
    """Chips of the rails that are closed to rings, 0 if there are none.

    Rails are closed round a whole rack; a part of one has open ends.
    """
    system = target.system
    is_whole = target.num_chips >= system.rack_chips
    return system.rack_chips if is_whole and system.topology == "torus" else 0


def route(source: int, destination: int, ring_chips: int = 0) -> Iterator[Link]:
    """The links a flow takes: over its rung if it must, then along the rail.

    Where rails are rings of `ring_chips`, both together, it goes the shorter way round.
    """
    here = source
    if (source ^ destination) & 1:
        yield here, here ^ 1
        here ^= 1
    # The next chip on the same rail is two numbers away.
    stride = 2 if destination > here else -2
    first = here - here % ring_chips if ring_chips else 0
    is_round = 0 <= destination - first < ring_chips < 2 * abs(destination - here)
    if is_round:
        stride = -stride
    while here != destination:
        there = here + stride
        if is_round:
            there = first + (there - first) % ring_chips
        yield here, there
        here = there


def _global_flows(
    step: GlobalExchange, num_chips: int
) -> Iterator[tuple[int, int, int]]:
    if step.replicas == 1:
        yield from step.flows
        return
    # Partners in other replicas: each chip sends half to the next replica round the
    # ring and half to the one before. With an odd number of chips replicas start on
    # either side of the ladder in turn.
    starts = (2 * num_chips, 3 * num_chips) if num_chips % 2 else (2 * num_chips,)
    for start in starts:
        for source, destination, num_bytes in step.flows:
            half = num_bytes // 2
            here, there = source + start, destination + start
            yield here, there + num_chips, num_bytes - half
            yield here, there - num_chips, half


def _loads(
    flows: list[tuple[int, int, int]], step: GlobalExchange, target: Target
) -> tuple[int, int]:
    """Bytes over the busiest link, and sent or passed on by the busiest chip."""
    period = target.num_chips * (1 + target.num_chips % 2)
    ring = _ring_chips(target)
    by_link: Counter[Link] = Counter()
    by_chip: Counter[int] = Counter()
    for source, destination, num_bytes in flows:
        for here, there in route(source, destination, ring):
            # Replicas are alike: a link of the next one carries what its twin does.
            twin = here % period if step.replicas > 1 else here
            by_link[twin, there - here] += num_bytes
            by_chip[twin] += num_bytes
    return max(by_link.values(), default=0), max(by_chip.values(), default=0)


def _gateway_cycles(step: GlobalExchange, target: Target) -> int:
    """Time at the gateway of the busiest machine, where racks must be crossed."""
    system = target.system
    by_machine: Counter[int] = Counter()
    is_wide = step.replicas * target.num_chips > system.rack_chips
    for source, destination, num_bytes in step.flows:
        machine = source // system.chips_per_machine
        if step.replicas > 1 and is_wide:
            # A rack's first replica sends half one way, its last one the other half.
            by_machine[machine] += ceil_div(num_bytes, 2)
        elif source // system.rack_chips != destination // system.rack_chips:
            by_machine[machine] += num_bytes
    return _gateway_transfer(max(by_machine.values(), default=0), step, target)


def _bytes_by_machine(step: GlobalExchange, target: Target) -> int:
    """What the chips of a machine send to other racks, all its replicas together."""
    by_machine: Counter[int] = Counter()
    for source, _, num_bytes in step.flows:
        by_machine[source // target.system.chips_per_machine] += num_bytes
    num_replicas = max(1, target.system.chips_per_machine // target.num_chips)
    return num_replicas * max(by_machine.values(), default=0)


def _gateway_transfer(num_bytes: int, step: GlobalExchange, target: Target) -> int:
    system = target.system
    if not num_bytes:
        return 0
    if not system.gateway_bytes_per_second:
        what = f"{step.name!r} leaves the rack, but the target has no gateways."
        remedy = f"Keep the group within {system.rack_chips} chips."
        raise ProgramError(what, where=f"target {system.name!r}", remedy=remedy)
    return transfer_cycles(num_bytes, system.gateway_bytes_per_second, target.chip)
