from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.program import (
    Codelet,
    ComputeSet,
    Direction,
    Exchange,
    PlacedVertex,
    StreamCopy,
    SyncKind,
    Thread,
    TileVector,
    VertexGroup,
    vertex_groups,
)
from popple.sim.phases import (
    compute_cycles_by_tile,
    compute_flops,
    exchange_cycles_by_tile,
    messages_by_tile,
    stream_cycles,
    sync_cycles,
)
from popple.target import Target, load_target
from tests.sim.machines import LATENCY, SYNC, bow_chip, make_target, tiles

WORKER = Codelet("w", Thread.WORKER)
MULTI = Codelet("m", Thread.MULTI)
SUPERVISOR = Codelet("s", Thread.SUPERVISOR)


def cycles_on_one_tile(*vertices: tuple[Codelet, int]) -> int:
    placed = [PlacedVertex(codelet, 0, cycles) for codelet, cycles in vertices]
    groups = vertex_groups(placed, 1)
    return compute_cycles_by_tile(ComputeSet("cs", groups), 6).maximum


@pytest.mark.parametrize(
    ("vertices", "expected"),
    [
        ([(WORKER, 20)], 6 * 20),
        ([(WORKER, 20)] * 6, 6 * 20),  # six workers, one each
        ([(WORKER, 20)] * 7, 6 * 40),  # one worker has two
        ([(WORKER, 20)] * 6 + [(WORKER, 1)], 6 * 21),
        ([(MULTI, 20)] * 3, 3 * 20),  # one after the other
        ([(SUPERVISOR, 20), (MULTI, 30)], 50),
        ([(MULTI, 30), (WORKER, 5), (WORKER, 7)], 30 + 6 * 7),  # mixed: added
    ],
)
def test_cycles_of_the_vertices_of_a_tile(
    vertices: list[tuple[Codelet, int]], expected: int
) -> None:
    assert cycles_on_one_tile(*vertices) == expected


THREADS = st.sampled_from([WORKER, MULTI, SUPERVISOR])
VERTICES = st.lists(st.tuples(THREADS, st.integers(0, 50)), max_size=9)


@given(VERTICES, st.tuples(THREADS, st.integers(0, 50)))
def test_one_more_vertex_never_shortens(
    vertices: list[tuple[Codelet, int]], extra: tuple[Codelet, int]
) -> None:
    assert cycles_on_one_tile(*vertices, extra) >= cycles_on_one_tile(*vertices)


def test_every_tile_has_its_own_time() -> None:
    group = VertexGroup(WORKER, tiles(1, 7, 0), tiles(10, 10, 10))
    cycles = compute_cycles_by_tile(ComputeSet("cs", (group,)), 6)
    assert cycles == tiles(60, 120, 0)


def test_an_empty_compute_set_takes_no_time() -> None:
    assert compute_cycles_by_tile(ComputeSet("cs", ()), 6) == TileVector(())


def test_flops_count_every_vertex() -> None:
    first = VertexGroup(MULTI, tiles(2, 3), tiles(1, 1), tiles(10, 100))
    silent = VertexGroup(MULTI, tiles(2, 3), tiles(1, 1))
    assert compute_flops(ComputeSet("cs", (first, silent))) == 2 * 10 + 3 * 100


@pytest.mark.parametrize(
    ("sent", "received", "messages", "is_shared", "payload"),
    [
        (40, 0, 0, False, 10),  # 40 B / 4
        (0, 40, 0, False, 10),
        (41, 40, 0, False, 11),
        (0, 40, 0, True, 5),  # two buses: 40 B / 8
        (40, 40, 0, True, 10),  # sending is not doubled
        (0, 40, 20, False, 40),  # two control instructions for each message
        (40, 40, 20, False, 50),  # issued by the thread that sends
    ],
)
def test_exchange_takes_as_long_as_issuing_or_receiving(
    sent: int, received: int, messages: int, is_shared: bool, payload: int
) -> None:
    step = Exchange(
        "e", tiles(sent, 0), tiles(received, 0), tiles(messages, 0), is_shared
    )
    cycles = exchange_cycles_by_tile(step, bow_chip())
    assert cycles == tiles(LATENCY + payload, 0)


def test_one_word_takes_as_long_as_in_a_genuine_profile() -> None:
    # One word from one tile to all others: 128 cycles in a profile of a Bow.
    step = Exchange("e", tiles(4, 0, 0), tiles(0, 4, 4), tiles(0, 0, 0))
    assert exchange_cycles_by_tile(step, bow_chip()) == tiles(128, 128, 128)


def test_messages_default_to_one_for_each_receiving_tile() -> None:
    step = Exchange("e", tiles(8, 0, 0), tiles(0, 4, 4))
    assert messages_by_tile(step) == tiles(0, 1, 1)
    assert messages_by_tile(replace(step, messages_by_tile=tiles(0, 2, 3))) == (
        tiles(0, 2, 3)
    )


@given(st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 99), st.booleans())
def test_faster_exchange_never_slows(
    sent: int, received: int, messages: int, is_shared: bool
) -> None:
    step = Exchange("e", tiles(sent), tiles(received), tiles(messages), is_shared)
    slow = bow_chip()
    fast = replace(slow, exchange_bytes_per_cycle=8)
    slower = exchange_cycles_by_tile(step, slow)
    assert exchange_cycles_by_tile(step, fast).maximum <= slower.maximum


@pytest.mark.parametrize(
    ("kind", "target", "expected"),
    [
        (SyncKind.INTERNAL, make_target(2), SYNC),
        # 324 ns at 1.85 GHz are 599.4 cycles.
        (SyncKind.EXTERNAL, make_target(2), SYNC + 600),
        (SyncKind.GLOBAL, make_target(2), SYNC + 600),
        (SyncKind.EXTERNAL, make_target(1), SYNC),
        (SyncKind.EXTERNAL, make_target(1).with_replicas(2), SYNC + 600),
    ],
)
def test_sync_within_chips_and_among_them(
    kind: SyncKind, target: Target, expected: int
) -> None:
    assert sync_cycles(kind, target) == expected


def test_a_host_copy_waits_and_moves() -> None:
    step = StreamCopy("in", Direction.FROM_HOST, tiles(5_500_000, 0))
    target = load_target("bow")
    # 1000 ns are 1850 cycles, two syncs of 68 among them; 5.5 MB at 5.5 GB/s take
    # 1 ms, 1,850,000 cycles (the tile alone would need 5,500,000 / 4 = 1,375,000).
    expected = (SYNC, 1850 - 2 * SYNC + 1_850_000, SYNC)
    assert stream_cycles(step, 5_500_000, target) == expected
    assert stream_cycles(step, 0, target) == (0, 0, 0)


def test_one_tile_limits_what_the_host_could_send() -> None:
    step = StreamCopy("in", Direction.FROM_HOST, tiles(4_000, 0), is_remote_buffer=True)
    _, mid, _ = stream_cycles(step, 4_000, load_target("bow"))
    # Streaming memory: 4000 B at 13.6 GB/s are 545 cycles, but 1000 into one tile.
    assert mid == 1850 - 2 * SYNC + 1_000


def test_remote_buffers_lie_with_the_host_where_nothing_else_is() -> None:
    step = StreamCopy("in", Direction.FROM_HOST, TileVector.constant(1216, 4))
    target = load_target("c2")
    remote = replace(step, is_remote_buffer=True)
    assert stream_cycles(remote, 4864, target) == stream_cycles(step, 4864, target)
