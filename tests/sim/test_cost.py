from __future__ import annotations

from popple.sim import Cost, total_cost

FIRST = Cost(1, 2, 3, 4, 5, 6, 7, 8, 9)
LONGER = Cost(compute_cycles=100, flops=10)


def test_cycles_are_the_sum_of_phases() -> None:
    assert FIRST.cycles == 1 + 2 + 3 + 4 + 5


def test_one_after_the_other_adds_everything() -> None:
    assert Cost(2, 4, 6, 8, 10, 12, 14, 16, 18) == FIRST + FIRST
    assert FIRST * 3 == FIRST + FIRST + FIRST
    assert total_cost([]) == Cost()
    assert total_cost([FIRST, LONGER]) == FIRST + LONGER


def test_side_by_side_takes_the_longer_time_and_both_works() -> None:
    both = FIRST.beside(LONGER)
    assert both == LONGER.beside(FIRST)
    assert both == Cost(
        compute_cycles=100, flops=16, exchange_bytes=7, link_bytes=8, host_bytes=9
    )
