"""Traffic between chips, and between chips and the host, moved for real and modelled.

In: bytes to send and the chips at both ends. Out: how many words arrived wrong, and the
seconds that the links of the target take. One round of the data is moved and checked;
further rounds would move the same bytes, and are only timed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from popple.device.faults import Fault
from popple.program import (
    Direction,
    GlobalExchange,
    Program,
    Repeat,
    Step,
    StreamCopy,
    TileVector,
)
from popple.sim import simulate
from popple.target import System, Target

Words = NDArray[np.uint32]
WORD_BYTES = 4
GIGA = 1e9


def position_of(system: System, chip_id: int) -> int:
    """Where on the ladder of links a chip sits."""
    order = system.device_order
    return order.index(chip_id) if order else chip_id


def move_words(num_bytes: int, seed: int, faults: Iterable[Fault]) -> int:
    """Send words that nobody else sends and count those that arrive wrong."""
    sent = np.arange(num_bytes // WORD_BYTES, dtype=np.uint32) ^ np.uint32(seed << 24)
    received = np.empty_like(sent)
    received[:] = sent
    for fault in faults:
        # A broken wire damages a bit of every word that takes it; a link carries every
        # sixteenth packet of 64 words.
        received[fault.link * 64 :: 1024] ^= np.uint32(1 << fault.bit)
    return int(np.count_nonzero(received != sent))


def time_links(
    system: System, pairs: Sequence[tuple[int, int]], bytes_per_tile: int, rounds: int
) -> float:
    """Seconds of traffic both ways between each pair of places, all at once."""
    num_chips = max(max(pair) for pair in pairs) + 1
    size = system.chip.num_tiles
    each = bytes_per_tile * size
    ends = {place for pair in pairs for place in pair}
    flows = tuple(flow for a, b in pairs for flow in ((a, b, each), (b, a, each)))
    by_tile = TileVector.of(
        (size, bytes_per_tile if place in ends else 0) for place in range(num_chips)
    )
    step = GlobalExchange("traffic", flows, by_tile, by_tile)
    return _time(step, Target(system, num_chips), rounds)


def time_host(
    system: System,
    directions: Sequence[Direction],
    bytes_per_tile: int,
    num_tiles: int,
    rounds: int,
) -> float:
    """Seconds of host traffic of one chip; both directions flow at the same time."""
    idle = system.chip.num_tiles - num_tiles
    by_tile = TileVector.of([(num_tiles, bytes_per_tile), (idle, 0)])
    copies = [StreamCopy(way.value, way, by_tile) for way in directions]
    times = [_time(copy, Target(system, 1), rounds) for copy in copies]
    return max(times)


def _time(step: Step, target: Target, rounds: int) -> float:
    program = Program(
        "traffic", target.num_chips, target.tiles_per_chip, {}, Repeat(rounds, step)
    )
    return simulate(program, target).seconds
