"""Micro-batches and output modes, with the specification's table as data."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from popple.engine.torch.session import OutputCollector
from popple.errors import UsageError
from popple.session import BatchPlan, InputGroups, MicroBatch, OutputPlan, Returned

# mode, N, B, D, G, R, input dim 0, [B,10] output, scalar output
TABLE = [
    (Returned.ALL, 1, 1, 10, 1, 1, 10, [10, 10], [10]),
    (Returned.EVERY_N, 5, 1, 10, 1, 1, 10, [2, 10], [2]),
    (Returned.FINAL, 1, 1, 10, 1, 1, 10, [1, 10], []),
    (Returned.SUM, 1, 1, 10, 1, 1, 10, [1, 10], []),
    (Returned.FINAL, 1, 2, 100, 1, 4, 800, [8, 10], [4]),
    (Returned.SUM, 1, 5, 5, 10, 1, 250, [5, 10], []),
    (Returned.ALL, 1, 2, 3, 4, 2, 48, [48, 10], [24]),
    (Returned.EVERY_N, 2, 2, 4, 2, 1, 16, [8, 10], [4]),
    (Returned.FINAL, 1, 2, 400, 8, 2, 12800, [4, 10], [2]),
]


def collected(plan: OutputPlan, batch: BatchPlan, x: torch.Tensor) -> torch.Tensor:
    """What a call that returns its input gives."""
    parts, collector = x.chunk(batch.num_shares), OutputCollector(plan)
    for place in batch.micro_batches():
        collector.add(place, parts[batch.share_of(place)])
    return collector.result()


@pytest.mark.parametrize(("mode", "n", "b", "d", "g", "r", "dim0", "wide", "s"), TABLE)
def test_shapes(
    mode: Returned,
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
    assert batch.find_micro_batch_size((dim0, 10)) == b
    assert list(plan.shape((b, 10))) == wide
    assert list(plan.shape(())) == s
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


VALUES = [
    (Returned.ALL, 1, [0, 1, 2, 3, 4, 5, 6, 7]),
    (Returned.FINAL, 1, [6, 7]),
    (Returned.EVERY_N, 2, [2, 3, 6, 7]),
    (Returned.SUM, 1, [0 + 2 + 4 + 6, 1 + 3 + 5 + 7]),
]


@pytest.mark.parametrize(("mode", "period", "expected"), VALUES)
def test_values_for_two_replicas(
    mode: Returned, period: int, expected: list[int]
) -> None:
    # D=4, R=2, B=1: replica 0 sees 0, 2, 4, 6 and replica 1 sees 1, 3, 5, 7.
    plan = OutputPlan(mode, 4, 1, 2, period)
    assert collected(plan, BatchPlan(4, 1, 2), torch.arange(8)).tolist() == expected


def test_every_n_counts_accumulation_steps() -> None:
    # D=2, G=2, N=2: of the four micro-batches of the replica the 2nd and 4th.
    plan = OutputPlan(Returned.EVERY_N, 2, 2, 1, 2)
    assert collected(plan, BatchPlan(2, 2, 1), torch.arange(4)).tolist() == [1, 3]


def test_every_n_must_divide_the_iterations() -> None:
    with pytest.raises(UsageError, match=r"every 3-th .* 4 device iterations"):
        OutputPlan(Returned.EVERY_N, 4, return_period=3)


def test_period_is_ignored_in_other_modes() -> None:
    assert OutputPlan(Returned.ALL, 4, return_period=3).factor == 4


@pytest.mark.parametrize("size", [7, 9, 4])
def test_batches_that_cannot_be_cut_have_no_size(size: int) -> None:
    assert BatchPlan(2, 2, 2).find_micro_batch_size((size, 3)) is None


def test_scalars_only_without_splitting() -> None:
    assert BatchPlan().find_micro_batch_size(()) == 1
    assert BatchPlan(2).find_micro_batch_size(()) is None


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        (InputGroups.CONSECUTIVE, [0, 0, 1, 1]),
        (InputGroups.ORTHOGONAL, [0, 1, 0, 1]),
    ],
)
def test_replicas_that_share_input(kind: InputGroups, groups: list[int]) -> None:
    plan = BatchPlan(replicas=4, input_group_size=2, input_groups=kind)
    assert plan.num_shares == 2
    assert [plan.share_of(place) for place in plan.micro_batches()] == groups


def test_plans_are_checked() -> None:
    with pytest.raises(UsageError, match="device_iterations"):
        BatchPlan(0)
    with pytest.raises(UsageError, match="do not divide"):
        BatchPlan(replicas=4, input_group_size=3)
    with pytest.raises(UsageError, match="return_period"):
        OutputPlan(Returned.ALL, return_period=0)


def test_incomplete_results_are_noticed() -> None:
    with pytest.raises(ValueError, match="expected 2 pieces but got 0"):
        OutputCollector(OutputPlan(Returned.ALL, 2)).result()


counts = st.integers(1, 4)


@given(b=counts, d=counts, g=counts, r=counts)
def test_all_gives_the_input_back(b: int, d: int, g: int, r: int) -> None:
    data = torch.arange(b * d * g * r)
    plan = OutputPlan(Returned.ALL, d, g, r)
    assert torch.equal(collected(plan, BatchPlan(d, g, r), data), data)


@given(b=counts, d=counts, g=counts, r=counts)
def test_sum_loses_nothing(b: int, d: int, g: int, r: int) -> None:
    data = torch.arange(b * d * g * r)
    total = collected(OutputPlan(Returned.SUM, d, g, r), BatchPlan(d, g, r), data)
    assert total.shape == (b * r,)
    assert total.sum() == data.sum()
