from __future__ import annotations

from popple.program import Exchange, Parallel, Repeat, Sequence, Sync
from popple.sim import ChipTime, simulate
from tests.sim.machines import LATENCY, SYNC, compute, make_target, tiles, two_chips


def test_each_cycle_of_a_chip_has_one_class() -> None:
    # Chip 0 computes 30 and exchanges 8 bytes: 2 cycles beside latency and a sync.
    move = Exchange("move", tiles(8, 0, 0, 0), tiles(0, 8, 0, 0))
    left = Sequence((compute("a", 30, 0, 0, 0), move))
    right = compute("b", 0, 0, 10, 0)
    program = two_chips(Sequence((Parallel((left, right)), Repeat(3, Sync()))))
    simulation = simulate(program, make_target(2, 2))
    total = 30 + SYNC + LATENCY + 2 + 3 * SYNC
    assert simulation.cost.cycles == total
    assert simulation.time_by_chip == (
        ChipTime(30, LATENCY + 2, sync_cycles=4 * SYNC),
        ChipTime(10, sync_cycles=3 * SYNC, bubble_cycles=total - 10 - 3 * SYNC),
    )
