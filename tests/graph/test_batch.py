"""Which dimension of what is fed counts samples."""

from __future__ import annotations

import pytest

from popple.graph import batch_of


@pytest.mark.parametrize(
    ("shapes", "batch"),
    [
        pytest.param([(16, 8), (16,)], 16, id="data and labels"),
        pytest.param([(4, 8), (4,), (512, 64)], 4, id="a table, which is larger"),
        pytest.param([(4, 8), (64, 8)], 4, id="a state after the data"),
        pytest.param([(10, 4, 8), (4,)], 4, id="time before batch"),
        pytest.param([(2, 4, 16), (4, 3, 8)], 4, id="the state of two layers"),
        pytest.param([(), ()], 1, id="numbers"),
        pytest.param([(0, 3)], 1, id="nothing in it"),
        pytest.param([], 1, id="nothing"),
    ],
)
def test_the_batch_is_what_most_inputs_share(
    shapes: list[tuple[int, ...]], batch: int
) -> None:
    assert batch_of(shapes) == batch
