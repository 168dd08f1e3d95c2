"""Micro-batches and output modes, with the specification's table as data."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import poptorch
from poptorch import CommGroupType, OutputMode
from poptorch._batching import BatchPlan, MicroBatch, OutputCollector, OutputPlan

# mode, N, B, D, G, R, input dim 0, [B,10] output, scalar output
TABLE = [
    (OutputMode.All, 1, 1, 10, 1, 1, 10, [10, 10], [10]),
    (OutputMode.EveryN, 5, 1, 10, 1, 1, 10, [2, 10], [2]),
    (OutputMode.Final, 1, 1, 10, 1, 1, 10, [1, 10], []),
    (OutputMode.Sum, 1, 1, 10, 1, 1, 10, [1, 10], []),
    (OutputMode.Final, 1, 2, 100, 1, 4, 800, [8, 10], [4]),
    (OutputMode.Sum, 1, 5, 5, 10, 1, 250, [5, 10], []),
    (OutputMode.All, 1, 2, 3, 4, 2, 48, [48, 10], [24]),
    (OutputMode.EveryN, 2, 2, 4, 2, 1, 16, [8, 10], [4]),
    (OutputMode.Final, 1, 2, 400, 8, 2, 12800, [4, 10], [2]),
]


def collected(plan: OutputPlan, batch: BatchPlan, x: torch.Tensor) -> torch.Tensor:
    """What a call that returns its input gives."""
    parts, collector = batch.split(x), OutputCollector(plan)
    for place in batch.micro_batches():
        collector.add(place, parts[batch.share_of(place)])
    return collector.result()


@pytest.mark.parametrize(("mode", "n", "b", "d", "g", "r", "dim0", "wide", "s"), TABLE)
def test_shapes(
    mode: OutputMode,
    n: int,
    b: int,
    d: int,
    g: int,
    r: int,
    dim0: int,
    wide: list[int],
    s: list[int],
) -> None:
    batch, plan = BatchPlan(d, g, r), OutputPlan(mode, d, g, r, n)
    data = torch.zeros(dim0, 10)
    assert batch.micro_batch_size(data) == b
    assert list(plan.shape(torch.Size([b, 10]))) == wide
    assert list(plan.shape(torch.Size([]))) == s
    assert list(collected(plan, batch, data).shape) == wide
    collector = OutputCollector(plan)
    for place in batch.micro_batches():
        collector.add(place, torch.tensor(1.0))
    assert list(collector.result().shape) == s


def test_order_is_iteration_step_replica() -> None:
    places = list(BatchPlan(2, 2, 2).micro_batches())
    assert places[:4] == [
        MicroBatch(0, 0, 0),
        MicroBatch(0, 0, 1),
        MicroBatch(0, 1, 0),
        MicroBatch(0, 1, 1),
    ]
    assert [BatchPlan(2, 2, 2).share_of(place) for place in places] == list(range(8))


def test_parts_are_views() -> None:
    data = torch.arange(6.0)
    part = BatchPlan(3).split(data)[1]
    part.fill_(9.0)
    assert data.tolist() == [0, 1, 9, 9, 4, 5]


VALUES = [
    (OutputMode.All, 1, [0, 1, 2, 3, 4, 5, 6, 7]),
    (OutputMode.Final, 1, [6, 7]),
    (OutputMode.EveryN, 2, [2, 3, 6, 7]),
    (OutputMode.Sum, 1, [0 + 2 + 4 + 6, 1 + 3 + 5 + 7]),
]


@pytest.mark.parametrize(("mode", "period", "expected"), VALUES)
def test_values_for_two_replicas(
    mode: OutputMode, period: int, expected: list[int]
) -> None:
    # D=4, R=2, B=1: replica 0 sees 0, 2, 4, 6 and replica 1 sees 1, 3, 5, 7.
    plan = OutputPlan(mode, 4, 1, 2, period)
    assert collected(plan, BatchPlan(4, 1, 2), torch.arange(8)).tolist() == expected


def test_every_n_counts_accumulation_steps() -> None:
    # D=2, G=2, N=2: of the four micro-batches of the replica the 2nd and 4th.
    plan = OutputPlan(OutputMode.EveryN, 2, 2, 1, 2)
    assert collected(plan, BatchPlan(2, 2, 1), torch.arange(4)).tolist() == [1, 3]


def test_every_n_must_divide_the_iterations() -> None:
    with pytest.raises(poptorch.Error, match=r"every 3-th .*deviceIterations \(4\)"):
        OutputPlan(OutputMode.EveryN, 4, return_period=3)


def test_period_is_ignored_in_other_modes() -> None:
    assert OutputPlan(OutputMode.All, 4, return_period=3).factor == 4


def test_default_mode_must_be_resolved() -> None:
    with pytest.raises(ValueError, match="resolved"):
        OutputPlan(OutputMode.Default)


@pytest.mark.parametrize("size", [7, 9, 4])
def test_invalid_batch_dimension(size: int) -> None:
    message = rf"Invalid batch dimension: x has size {size} .*multiple of 8 .*\(2\)"
    with pytest.raises(AssertionError, match=message):
        BatchPlan(2, 2, 2).split(torch.zeros(size), "x")


def test_scalars_only_without_splitting() -> None:
    scalar = torch.tensor(3.0)
    assert BatchPlan().split(scalar) == [scalar]
    with pytest.raises(AssertionError, match="no dimension"):
        BatchPlan(2).split(scalar)


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        (CommGroupType.Consecutive, [0, 0, 1, 1]),
        (CommGroupType.Orthogonal, [0, 1, 0, 1]),
    ],
)
def test_replicas_that_share_input(kind: CommGroupType, groups: list[int]) -> None:
    plan = BatchPlan(replication_factor=4, input_group_size=2, input_group_type=kind)
    assert plan.num_shares == 2
    assert [plan.share_of(place) for place in plan.micro_batches()] == groups


def test_plans_are_checked() -> None:
    with pytest.raises(ValueError, match="device_iterations"):
        BatchPlan(0)
    with pytest.raises(ValueError, match="must divide"):
        BatchPlan(replication_factor=4, input_group_size=3)
    with pytest.raises(ValueError, match="return_period"):
        OutputPlan(OutputMode.All, return_period=0)


def test_incomplete_results_are_noticed() -> None:
    with pytest.raises(ValueError, match="expected 2 pieces but got 0"):
        OutputCollector(OutputPlan(OutputMode.All, 2)).result()


counts = st.integers(1, 4)


@given(b=counts, d=counts, g=counts, r=counts)
def test_all_gives_the_input_back(b: int, d: int, g: int, r: int) -> None:
    data = torch.arange(b * d * g * r)
    plan = OutputPlan(OutputMode.All, d, g, r)
    assert torch.equal(collected(plan, BatchPlan(d, g, r), data), data)


@given(b=counts, d=counts, g=counts, r=counts)
def test_sum_loses_nothing(b: int, d: int, g: int, r: int) -> None:
    data = torch.arange(b * d * g * r)
    total = collected(OutputPlan(OutputMode.Sum, d, g, r), BatchPlan(d, g, r), data)
    assert total.shape == (b * r,)
    assert total.sum() == data.sum()
