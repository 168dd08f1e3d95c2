"""Cycles of compute, exchange, sync and host phases, from tile vectors and constants.

    compute   longest tile; workers share a tile's vertices
    exchange  sync, latency, longest tile: sending and control, or receiving
    host      begin, transfer at the host's or the streaming memory's rate, end

Traffic between chips is in `links`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from popple.program import (
    ComputeSet,
    Exchange,
    StreamCopy,
    SyncKind,
    Thread,
    TileVector,
    VertexGroup,
    aligned_runs,
    combine,
    worker_cycles,
)
from popple.target import Chip, Target
from popple.units import ceil_div

CONTROLS_PER_MESSAGE = 2
"""Instructions of a receiving tile for each message, one cycle each: 32 messages take
64 of the 67 exchange instructions of a tile in a genuine Bow profile."""


def internal_sync_cycles(chip: Chip) -> int:
    """A barrier among the tiles of a chip, until the farthest tile has heard."""
    return chip.min_sync_delay_cycles + chip.max_sync_delay_cycles


def sync_cycles(kind: SyncKind, target: Target) -> int:
    """A barrier within each chip, or among all chips of all replicas."""
    internal = internal_sync_cycles(target.chip)
    # Alone, a chip has nobody to wait for outside, whatever the program calls the sync.
    is_alone = target.num_chips * target.num_replicas == 1
    if kind is SyncKind.INTERNAL or is_alone:
        return internal
    return internal + cycles_of_ns(target.system.external_sync_ns, target.chip)


def cycles_of_ns(nanoseconds: float, chip: Chip) -> int:
    """Cycles of the chip's clock that begin within a time."""
    return math.ceil(nanoseconds * chip.clock_hz / 1e9)


def transfer_cycles(num_bytes: int, bytes_per_second: float, chip: Chip) -> int:
    """Cycles to move bytes at a rate given in seconds."""
    return math.ceil(num_bytes * chip.clock_hz / bytes_per_second)


def compute_cycles_by_tile(compute_set: ComputeSet, num_workers: int) -> TileVector:
    """Tile cycles of a compute phase.

    Worker vertices are dealt to the workers in turn, each of which issues every
    `num_workers` cycles. Other vertices run one after the other, before or after.
    """
    groups = compute_set.vertices
    if not groups:
        return TileVector(())
    if len(groups) == 1:
        return _single_group_cycles(groups[0], num_workers)
    counts = [group.count_by_tile for group in groups]
    cycles = [group.cycles_by_tile for group in groups]
    threads = [group.codelet.thread for group in groups]
    size = len(groups)

    def tile_cycles(values: Sequence[int]) -> int:
        return _mixed_cycles(threads, values[:size], values[size:], num_workers)

    return combine(tile_cycles, [*counts, *cycles])


def _single_group_cycles(group: VertexGroup, num_workers: int) -> TileVector:
    # The usual compute set has one group. Of equal vertices the busiest worker has the
    # count divided by the workers, rounded up, so no dealing is needed; `num_workers`
    # appears again because a worker issues every `num_workers` tile cycles.
    rows = aligned_runs([group.count_by_tile, group.cycles_by_tile])
    if group.codelet.thread is not Thread.WORKER:
        return TileVector.of((tiles, count * each) for tiles, count, each in rows)
    return TileVector.of(
        (tiles, ceil_div(count, num_workers) * num_workers * each)
        for tiles, count, each in rows
    )


def _mixed_cycles(
    threads: Sequence[Thread],
    counts: Sequence[int],
    cycles: Sequence[int],
    num_workers: int,
) -> int:
    in_turn: list[tuple[int, int]] = []
    total = 0
    for thread, count, each in zip(threads, counts, cycles, strict=True):
        if thread is Thread.WORKER:
            in_turn.append((count, each))
        else:
            total += count * each
    shared = worker_cycles(
        [c for c, _ in in_turn], [e for _, e in in_turn], num_workers
    )
    return total + shared * num_workers


def compute_flops(compute_set: ComputeSet) -> int:
    """Floating-point operations of all vertices."""
    return sum(
        tiles * count * each
        for group in compute_set.vertices
        if group.flops_by_tile is not None
        for tiles, count, each in aligned_runs(
            [group.count_by_tile, group.flops_by_tile]
        )
    )


def exchange_cycles_by_tile(step: Exchange, chip: Chip) -> TileVector:
    """Cycles of the exchange phase on every tile that sends or receives.

    One thread issues a word to send or an instruction for a message every cycle; data
    arrive meanwhile. (Rims of a stencil on GC2, thorbenlouw/lbm-graphcore: 637, 1173,
    263 and 397 cycles published, 680, 1054, 264 and 362 by this rule.) Paired tiles
    that receive the same data add up the width of their buses.
    """
    send_rate = chip.exchange_bytes_per_cycle
    paired = chip.tiles_per_exchange_bus if step.is_shared else 1
    receive_rate = send_rate * paired
    latency = chip.exchange_latency_cycles

    def tile_cycles(values: Sequence[int]) -> int:
        sent, received, messages = values
        if not sent and not received:
            return 0
        issued = ceil_div(sent, send_rate) + messages * CONTROLS_PER_MESSAGE
        return latency + max(issued, ceil_div(received, receive_rate))

    vectors = [step.sent_by_tile, step.received_by_tile, messages_by_tile(step)]
    return combine(tile_cycles, vectors)


def messages_by_tile(step: Exchange) -> TileVector:
    """Messages received; one per receiving tile where the step does not say."""
    if step.messages_by_tile is not None:
        return step.messages_by_tile
    return step.received_by_tile.presence()


def stream_cycles(
    step: StreamCopy, chip_bytes: int, target: Target
) -> tuple[int, int, int]:
    """(begin, mid, end) cycles of a stream copy on a chip that moves `chip_bytes`.

    The host's latency is that of a whole small copy, syncs at both ends included.
    Remote buffers lie in streaming memory, or with the host where there is none.
    """
    if not chip_bytes:
        return 0, 0, 0
    chip, system = target.chip, target.system
    sync = internal_sync_cycles(chip)
    # The published latency is that of begin, mid and end together. Their syncs are
    # given on their own, so they are taken out of the wait.
    waiting = max(0, cycles_of_ns(system.host_latency_ns, chip) - 2 * sync)
    rate = system.host_bytes_per_second
    if step.is_remote_buffer and system.streaming_bytes_per_second:
        rate = system.streaming_bytes_per_second
    # Data on one tile cannot be faster than its exchange port, however fast the host.
    busiest_tile = ceil_div(step.bytes_by_tile.maximum, chip.exchange_bytes_per_cycle)
    moving = max(transfer_cycles(chip_bytes, rate, chip), busiest_tile)
    return sync, waiting + moving, sync
