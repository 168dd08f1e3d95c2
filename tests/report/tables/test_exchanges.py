"""Sums by chip are those of the vectors by tile, however they are cut into runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from popple.report import array_of, runs_of
from popple.report.tables.exchanges import sum_by_chip

TILES_PER_CHIP = 3
tile_bytes = st.lists(st.integers(0, 4), min_size=9, max_size=9)


@given(tile_bytes, tile_bytes)
def test_sums_agree_with_arrays(received: list[int], sent: list[int]) -> None:
    found = sum_by_chip(runs_of(received), runs_of(sent), TILES_PER_CHIP)
    sums = [list(array_of(runs)) for runs in found]
    chips = [slice(start, start + TILES_PER_CHIP) for start in range(0, 9, 3)]
    both = [a + b for a, b in zip(received, sent, strict=True)]
    assert sums[0] == [sum(received[chip]) for chip in chips]
    assert sums[1] == [sum(sent[chip]) for chip in chips]
    assert sums[2] == [max(both[chip]) for chip in chips]


def test_one_run_may_span_chips() -> None:
    # 6 tiles of 5 bytes each way on 2 chips: 15 each, 10 through every tile.
    received, sent, most = sum_by_chip(((6, 5),), ((6, 5),), TILES_PER_CHIP)
    assert received == sent == ((1, 15), (1, 15))
    assert most == ((1, 10), (1, 10))
