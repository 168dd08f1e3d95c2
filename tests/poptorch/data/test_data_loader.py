"""`DataLoader` in the program's own process: sizes, samplers, partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, SequentialSampler

import poptorch
from tests.poptorch.datasets import Numbers, Stream, first_values


def options(**values: int) -> poptorch.Options:
    result = poptorch.Options()
    for name, value in values.items():
        getattr(result, name)(value)
    return result


def loader(length: int, opts: poptorch.Options | None = None, **rest: Any) -> Any:
    return poptorch.DataLoader(opts or poptorch.Options(), Numbers(length), **rest)


def all_values(batches: Any) -> list[int]:
    return [value for batch in first_values(batches) for value in batch]


def test_combined_batch_size() -> None:
    opts = options(deviceIterations=2, replicationFactor=4)
    opts.inputReplicaGrouping(2, poptorch.CommGroupType.Consecutive)
    opts.Training.gradientAccumulation(3)
    data = loader(100, opts, batch_size=2)
    # 2 x D 2 x G 3 x (R 4 / I 2)
    assert data.combinedBatchSize == 24
    assert len(data) == 100 // 24
    assert [len(batch) for batch in data] == [24] * 4
    assert data.options is opts


def test_options_are_frozen_and_checked() -> None:
    opts = poptorch.Options()
    loader(4, opts)
    with pytest.raises(AttributeError, match="frozen"):
        opts.deviceIterations(2)
    with pytest.raises(AssertionError, match="Options, not int"):
        poptorch.DataLoader(3, Numbers(4))  # pyright: ignore[reportArgumentType]


def test_order_and_dropped_rest() -> None:
    data = loader(7, options(deviceIterations=3))
    assert first_values(data) == [[0, 1, 2], [3, 4, 5]]
    assert first_values(data) == [[0, 1, 2], [3, 4, 5]]


def test_kept_rest_warns(caplog: pytest.LogCaptureFixture) -> None:
    data = loader(7, options(deviceIterations=3), drop_last=False)
    assert first_values(data)[-1] == [6]
    assert len(data) == 3
    assert "7 items of the dataset are not a multiple of the 3" in caplog.text


def test_no_warning_without_a_rest(caplog: pytest.LogCaptureFixture) -> None:
    loader(6, options(deviceIterations=3), drop_last=False)
    assert not caplog.messages


def test_too_small_a_dataset_is_empty_and_warns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opts = options(deviceIterations=4)
    data = loader(5, opts, batch_size=2)
    assert (len(data), list(data)) == (0, [])
    assert "5 items of the dataset do not make one whole batch of 8" in caplog.text
    assert "drop_last=False" in caplog.text
    assert len(loader(5, opts, batch_size=2, drop_last=False)) == 1


def test_batch_size_none() -> None:
    data = loader(3, options(deviceIterations=3), batch_size=None, drop_last=False)
    assert data.combinedBatchSize is None
    assert [item.tolist() for item in data] == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(AttributeError):
        _ = data.options


def test_shuffle_keeps_every_item() -> None:
    torch.manual_seed(0)
    values = all_values(loader(8, batch_size=4, shuffle=True))
    assert sorted(values) == list(range(8))
    assert values != list(range(8))


def test_persistent_workers_follow_num_workers() -> None:
    assert loader(4).persistent_workers is False
    data = loader(4, num_workers=1)
    assert data.persistent_workers is True
    assert first_values(data) == [[0], [1], [2], [3]]


def sampler(length: int, batch_size: int) -> BatchSampler:
    return BatchSampler(SequentialSampler(range(length)), batch_size, False)


@pytest.mark.parametrize(
    ("drop_last", "expected"),
    [(True, [[0, 1, 2, 3, 4, 5]]), (False, [[0, 1, 2, 3, 4, 5], [6]])],
)
def test_batches_of_a_sampler_are_joined(
    drop_last: bool, expected: list[list[int]]
) -> None:
    opts, batches = options(deviceIterations=3), sampler(7, 2)
    data = loader(7, opts, batch_sampler=batches, drop_last=drop_last)
    assert data.combinedBatchSize == 6
    assert len(data) == 4  # counts the sampler's own batches
    assert first_values(data) == expected


class Unsized:
    """A sampler that says neither its length nor its batch size."""

    def __iter__(self) -> Iterator[list[int]]:
        yield from ([0], [1], [2])


def test_sampler_without_sizes() -> None:
    data = loader(3, options(deviceIterations=2), batch_sampler=Unsized())
    assert data.combinedBatchSize == 2
    assert first_values(data) == [[0, 1]]


def test_structures_are_joined_leaf_by_leaf() -> None:
    pairs = torch.utils.data.TensorDataset(torch.arange(4), torch.arange(4, 8))
    data = poptorch.DataLoader(
        options(deviceIterations=2), pairs, batch_sampler=sampler(4, 2)
    )
    ((left, right),) = data
    assert (left.tolist(), right.tolist()) == ([0, 1, 2, 3], [4, 5, 6, 7])


@pytest.mark.parametrize("rest", [{"batch_size": 2}, {"shuffle": True}])
def test_a_sampler_excludes_other_arguments(rest: dict[str, Any]) -> None:
    with pytest.raises(poptorch.Error, match="excludes batch_size and shuffle"):
        loader(4, batch_sampler=sampler(4, 2), **rest)


def test_a_sampler_excludes_partitioning() -> None:
    opts = poptorch.Options()
    opts.Distributed.configureProcessId(0, 2)
    with pytest.raises(poptorch.Error, match="auto_distributed_partitioning"):
        loader(4, opts.clone(), batch_sampler=sampler(4, 2))
    loader(4, opts, batch_sampler=sampler(4, 2), auto_distributed_partitioning=False)


def test_too_few_batches_of_a_sampler(caplog: pytest.LogCaptureFixture) -> None:
    data = loader(4, options(deviceIterations=3), batch_sampler=sampler(4, 2))
    assert list(data) == []
    assert "2 batches of the batch sampler do not make one" in caplog.text


def process_loader(process_id: int, num: int, length: int = 23, **rest: Any) -> Any:
    opts = poptorch.Options().randomSeed(42)
    opts.Distributed.configureProcessId(process_id, num)
    return loader(length, opts, batch_size=2, **rest)


def test_processes_get_consecutive_equal_parts() -> None:
    # One step of 3 processes takes 6 items: 23 // 6 = 3 steps of 2 items each.
    parts = [all_values(process_loader(p, 3)) for p in range(3)]
    assert parts == [list(range(6)), list(range(6, 12)), list(range(12, 18))]


def test_kept_rest_is_split_evenly() -> None:
    loaders = [process_loader(p, 3, drop_last=False) for p in range(3)]
    assert [len(data.dataset) for data in loaders] == [8, 8, 7]
    assert first_values(loaders[2])[-1] == [22]


def test_shuffled_processes_share_one_permutation() -> None:
    loaders = [process_loader(p, 3, shuffle=True) for p in range(3)]
    epochs = []
    for _ in range(2):
        parts = [all_values(data) for data in loaders]
        together = [value for part in parts for value in part]
        assert len(together) == len(set(together)) == 18
        epochs.append(parts)
    assert epochs[0] != epochs[1]


def test_shuffled_window_moves_by_the_left_out_items() -> None:
    data = process_loader(1, 3, shuffle=True)
    offsets = []
    for _ in range(3):
        list(data)
        offsets.append(int(data.dataset._offset))
    # Base offset 6 and 23 - 18 = 5 items left out: shifted in every other epoch.
    assert offsets == [11, 6, 11]


def test_persistent_workers_see_new_permutations() -> None:
    fresh = process_loader(0, 2, shuffle=True)
    expected = [first_values(fresh) for _ in range(3)]
    with_workers = process_loader(0, 2, shuffle=True, num_workers=1)
    assert [first_values(with_workers) for _ in range(3)] == expected


def test_partitioning_needs_a_seed_to_shuffle() -> None:
    opts = poptorch.Options()
    opts.Distributed.configureProcessId(0, 2)
    with pytest.raises(AssertionError, match="randomSeed"):
        loader(8, opts, shuffle=True)
    with pytest.raises(AssertionError, match="batch_size=None"):
        loader(8, opts, batch_size=None)


def test_too_few_items_for_all_processes() -> None:
    with pytest.raises(poptorch.Error, match=r"one step of 3 processes takes 6"):
        process_loader(0, 3, length=5)


def test_manual_partitioning_leaves_the_dataset_alone() -> None:
    data = process_loader(1, 3, length=4, auto_distributed_partitioning=False)
    assert first_values(data) == [[0, 1], [2, 3]]


def test_iterable_datasets() -> None:
    data = poptorch.DataLoader(options(deviceIterations=2), Stream(5))
    assert first_values(data) == [[0, 1], [2, 3]]
    with pytest.raises(TypeError, match="'Stream' has no len"):
        len(data)


def test_iterable_datasets_are_not_partitioned() -> None:
    opts = poptorch.Options()
    opts.Distributed.configureProcessId(0, 2)
    with pytest.raises(AssertionError, match="IterableDataset cannot be partitioned"):
        poptorch.DataLoader(opts, Stream(4))


def test_several_workers_repeat_an_iterable(caplog: pytest.LogCaptureFixture) -> None:
    poptorch.DataLoader(poptorch.Options(), Stream(4), num_workers=2)
    assert "every item will come 2 times" in caplog.text


def test_terminate_does_nothing_in_sync_mode() -> None:
    data = loader(2)
    data.terminate()
    assert len(list(data)) == 2
