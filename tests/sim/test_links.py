from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import ProgramError
from popple.program import GlobalExchange, TileVector
from popple.sim.links import link_cycles, route
from popple.target import Target, load_system, load_target

# 640 ns a hop at 1.85 GHz: 1,184 cycles; 27.2 GB/s to a neighbour, 136 GB/s in all.
ONE_HOP, TWO_HOPS = 1184, 2368
MEGABYTE = 1_000_000
NEIGHBOUR_CYCLES = 68_015  # 1 MB x 1.85 GHz / 27.2 GB/s = 68,014.7


def flows(*each: tuple[int, int, int], replicas: int = 1) -> GlobalExchange:
    nothing = TileVector.zeros(1472)
    return GlobalExchange("g", each, nothing, nothing, replicas=replicas)


def pod(num_chips: int, num_replicas: int = 1, name: str = "bow-pod16") -> Target:
    return load_target(name, num_chips, num_replicas)


@pytest.mark.parametrize(
    ("source", "destination", "links"),
    [
        (0, 0, []),
        (0, 1, [(0, 1)]),
        (0, 2, [(0, 2)]),
        (0, 3, [(0, 1), (1, 3)]),  # the rung first
        (5, 0, [(5, 4), (4, 2), (2, 0)]),
    ],
)
def test_routes_cross_the_rung_and_follow_the_rail(
    source: int, destination: int, links: list[tuple[int, int]]
) -> None:
    assert list(route(source, destination)) == links


@given(st.integers(0, 127), st.integers(0, 127), st.sampled_from([0, 64]))
def test_routes_arrive(source: int, destination: int, ring_chips: int) -> None:
    here = source
    for start, stop in route(source, destination, ring_chips):
        assert here == start
        here = stop
    assert here == destination


@pytest.mark.parametrize(
    ("source", "destination", "links"),
    [
        (0, 12, [(0, 14), (14, 12)]),
        (12, 0, [(12, 14), (14, 0)]),
        (0, 8, [(0, 2), (2, 4), (4, 6), (6, 8)]),  # both ways are as long
        (1, 14, [(1, 0), (0, 14)]),
        (16, 30, [(16, 30)]),  # the ring of the second rack
        (14, 16, [(14, 16)]),  # from one rack to the next
    ],
)
def test_a_ring_is_gone_round_the_shorter_way(
    source: int, destination: int, links: list[tuple[int, int]]
) -> None:
    assert list(route(source, destination, ring_chips=16)) == links


def test_a_torus_joins_the_ends_of_its_rails() -> None:
    far = flows((0, 62, MEGABYTE))
    whole = link_cycles(far, pod(64, name="bow-pod64"))
    assert whole == NEIGHBOUR_CYCLES + ONE_HOP


def test_a_flow_to_a_neighbour() -> None:
    assert link_cycles(flows((0, 1, MEGABYTE)), pod(2)) == NEIGHBOUR_CYCLES + ONE_HOP


def test_flows_over_one_link_share_it() -> None:
    # 0 -> 2 and 1 -> 2 (over 0) both take the link from 0 to 2.
    shared = link_cycles(flows((0, 2, MEGABYTE), (1, 2, MEGABYTE)), pod(4))
    assert shared == 136_030 + TWO_HOPS  # 2 MB: 136,029.4
    apart = link_cycles(flows((0, 2, MEGABYTE), (1, 3, MEGABYTE)), pod(4))
    assert apart == NEIGHBOUR_CYCLES + ONE_HOP


def test_a_step_may_know_of_more_hops() -> None:
    longer = replace(flows((0, 1, MEGABYTE)), num_hops=2)
    assert link_cycles(longer, pod(2)) == NEIGHBOUR_CYCLES + TWO_HOPS


def test_tiles_may_be_slower_than_links() -> None:
    one_tile = TileVector(((1, 4_000_000), (2943, 0)))
    step = replace(flows((0, 1, MEGABYTE)), received_by_tile=one_tile)
    # 4 MB into one tile at 4 B a cycle.
    assert link_cycles(step, pod(2)) == 1_000_000 + ONE_HOP


def test_replicas_of_one_chip_pass_data_round() -> None:
    # Chip 0 sends to 1, 1 to 2 over 0: no link carries more than one flow.
    cycles = link_cycles(flows((0, 0, MEGABYTE), replicas=4), pod(1, 4))
    assert cycles == NEIGHBOUR_CYCLES + TWO_HOPS


def test_replicas_of_four_chips_share_the_rails() -> None:
    # Each chip sends half two rungs up and half two down; both chips of a side load
    # every link of their rail.
    each = [(chip, chip, MEGABYTE) for chip in range(4)]
    cycles = link_cycles(flows(*each, replicas=4), pod(4, 4))
    assert cycles == NEIGHBOUR_CYCLES + TWO_HOPS


def test_groups_beyond_a_rack_pass_the_gateways() -> None:
    # Four chips of a machine share 21.25 GB/s, half of their data one way: 2 MB x 1.85
    # / 21.25 = 174,117.6.
    each = [(chip, chip, MEGABYTE) for chip in range(4)]
    step = flows(*each, replicas=32)
    assert link_cycles(step, pod(4, 32, "bow-pod128")) == 174_118 + TWO_HOPS
    within = link_cycles(replace(step, replicas=16), pod(4, 16, "bow-pod128"))
    assert within == NEIGHBOUR_CYCLES + TWO_HOPS


def test_all_machines_cross_to_other_racks_at_once() -> None:
    # Four chips send 1 MB each through their gateway: 4 MB x 1.85 / 21.25 = 348,235.3;
    # 3 hops of 1,184 cycles. Four replicas of one chip share a gateway as well.
    each = [(chip, chip, MEGABYTE) for chip in range(4)]
    step = replace(flows(*each, replicas=2), is_between_racks=True)
    assert link_cycles(step, pod(4, 32, "bow-pod128")) == 348_236 + 3 * ONE_HOP
    alone = replace(step, flows=((0, 0, MEGABYTE),))
    assert link_cycles(alone, pod(1, 128, "bow-pod128")) == 348_236 + 3 * ONE_HOP


def test_nothing_to_send_takes_no_time() -> None:
    assert link_cycles(flows(), pod(2)) == 0
    assert link_cycles(flows((0, 1, 0)), pod(2)) == 0


def test_a_lone_chip_has_no_links() -> None:
    with pytest.raises(ProgramError, match="'g' sends between chips") as caught:
        link_cycles(flows((0, 0, 4), replicas=2), load_target("bow"))
    assert "system with several chips" in caught.value.remedy


def test_a_rack_without_gateways_cannot_be_left() -> None:
    with pytest.raises(ProgramError, match="leaves the rack"):
        link_cycles(flows((0, 0, 4), replicas=3), Target(load_system("c2"), 1, 2))
