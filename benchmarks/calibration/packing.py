"""Packing: how many sequences of different lengths share a row of a batch.

As in the programs of graphcore/PopRT (benchmarks/bert, examples/packed_bert_example):
lengths drawn around half a row, with a deviation as large, from the seed they set; each
sequence goes to the first row that has room for it.
"""

from __future__ import annotations

from functools import cache

import numpy as np

_SEED = 2023
_NUM_SEQUENCES = 1000


@cache
def sequences_by_row(length: int) -> float:
    """Mean sequences in a row of `length` tokens."""
    drawn = np.random.RandomState(_SEED).normal(
        length // 2, length // 2, _NUM_SEQUENCES
    )
    lengths = np.clip(drawn.astype(np.int32), 1, length)
    rooms: list[int] = []
    for taken in lengths.tolist():
        place = next((i for i, room in enumerate(rooms) if room >= taken), len(rooms))
        if place == len(rooms):
            rooms.append(length)
        rooms[place] -= taken
    return _NUM_SEQUENCES / len(rooms)
