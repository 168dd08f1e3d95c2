"""fps and nearest."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import poptorch
from tests.poptorch.models import options
from tests.poptorch.running import compiled, on_ipu

LINE = torch.tensor([[0.0], [1.0], [10.0], [4.0]])


def test_samples_are_the_farthest_points() -> None:
    # From 0 the farthest is 10; then 4 is farther from both than 1 is.
    assert poptorch.fps(LINE, [0, 4], 1.0).tolist() == [0, 2, 3, 1]
    result = on_ipu(lambda x: poptorch.fps(x, [0, 4], 0.5), LINE)
    assert result.tolist() == [0, 2]
    assert result.dtype is torch.int32


def test_each_example_is_sampled_by_itself() -> None:
    points = torch.cat([LINE, LINE + 100])
    result = on_ipu(lambda x: poptorch.fps(x, [0, 4, 8], 0.5), points)
    assert result.tolist() == [0, 2, 4, 6]


def test_numbers_of_samples_are_rounded_up_in_single_precision() -> None:
    # 0.1 * 30 is 3.0000000000000004 in double precision.
    assert len(poptorch.fps(torch.rand(30, 3), [0, 30], 0.1)) == 3
    assert len(poptorch.fps(torch.rand(31, 3), [0, 31], 0.1)) == 4


def test_a_random_start_lies_in_its_example() -> None:
    points = torch.rand(20, 3)
    model = compiled(
        lambda x: poptorch.fps(x, [0, 5, 20], 0.2, True), options().randomSeed(1)
    )
    starts = [tuple(model(points)[[0, 1]].tolist()) for _ in range(20)]
    assert all(0 <= a < 5 <= b < 20 for a, b in starts)
    assert len(set(starts)) > 1


def test_points_can_be_picked_by_the_samples() -> None:
    picked = on_ipu(lambda x: x[poptorch.fps(x, [0, 4], 0.5)], LINE)
    assert torch.equal(picked, LINE[[0, 2]])


@pytest.mark.parametrize(
    "arguments",
    [
        (LINE.tolist(), [0, 4]),
        (LINE, (0, 4)),
        (LINE, [0, 3]),
        (LINE, [0, 3, 2, 4]),
        (LINE, [0, 4], 2.0),
        (LINE, [0, 4], 0.5, 1),
    ],
)
def test_arguments_of_fps_are_checked(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(poptorch.Error, match="of fps must"):
        poptorch.fps(*arguments)


X = torch.tensor([[0.0, 0.0], [5.0, 5.0], [1.0, 0.0]])
Y = torch.tensor([[4.0, 4.0], [0.5, 0.0]])


def test_the_nearest_point_is_found() -> None:
    assert poptorch.nearest(X, Y).tolist() == [1, 0, 1]
    result = on_ipu(poptorch.nearest, X, Y)
    assert result.tolist() == [1, 0, 1]
    assert result.dtype is torch.int32


def test_points_of_other_examples_do_not_count() -> None:
    batch_x, batch_y = [0, 0, 1], [0, 1]
    expected = [0, 0, 1]
    for make in (list, torch.tensor):
        result = on_ipu(
            lambda x, y, make=make: poptorch.nearest(
                x, y, make(batch_x), make(batch_y)
            ),
            X,
            Y,
        )
        assert result.tolist() == expected


def test_a_batch_left_out_is_all_zeros() -> None:
    zeros = torch.zeros(3, dtype=torch.int64)
    assert poptorch.nearest(X, Y, zeros).tolist() == [1, 0, 1]


def test_numbers_are_points_on_a_line() -> None:
    line = torch.tensor([0.0, 9.0])
    assert poptorch.nearest(line, torch.tensor([8.0, 1.0])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, Y, [0, 1, 0], [0, 1]), "batch_x of nearest is not sorted"),
        ((X, Y, [0, 0, 1], [0, 0]), "different examples"),
        ((X, Y, [0, 1, 1], None), "different examples"),
        ((X, Y, [0, 1], [0, 1]), "a number for each of 3 points"),
        ((X, Y[:, :1]), "different numbers of coordinates: 2 and 1"),
        ((X[None], Y), "at most two dimensions"),
    ],
)
def test_arguments_of_nearest_are_checked(
    arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        poptorch.nearest(*arguments)


def test_nearest_takes_tensors() -> None:
    with pytest.raises(poptorch.Error, match="x of nearest"):
        poptorch.nearest(X.tolist(), Y)  # pyright: ignore[reportArgumentType]


def test_gradients_flow_through_picked_points() -> None:
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return y[poptorch.nearest(x, y)] - x

    assert torch.equal(on_ipu(forward, X, Y), Y[[1, 0, 1]] - X)
