"""Loading in another process: order, epochs, restarts, failures, rebatching."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import poptorch
from poptorch import DataLoaderMode, SharingStrategy
from tests.poptorch.datasets import Broken, Numbers, Pair, Stream, first_values

Make = Callable[..., poptorch.AsynchronousDataAccessor]


@pytest.fixture
def accessor() -> Iterator[Make]:
    made: list[poptorch.AsynchronousDataAccessor] = []

    def make(*args: Any, **kwargs: Any) -> poptorch.AsynchronousDataAccessor:
        made.append(poptorch.AsynchronousDataAccessor(*args, **kwargs))
        return made[-1]

    yield make
    for item in made:
        item.terminate()


@pytest.fixture
def loader() -> Iterator[Callable[..., Any]]:
    made: list[poptorch.DataLoader] = []

    def make(dataset: Any, mode: DataLoaderMode, **rest: Any) -> poptorch.DataLoader:
        made.append(poptorch.DataLoader(poptorch.Options(), dataset, mode=mode, **rest))
        return made[-1]

    yield make
    for item in made:
        item.terminate()


def numbers(iterable: Any) -> list[int]:
    return [int(item[0]) for item in iterable]


@pytest.mark.parametrize("load_indefinitely", [True, False])
def test_epochs_repeat(accessor: Make, load_indefinitely: bool) -> None:
    data = accessor(Stream(5), buffer_size=2, load_indefinitely=load_indefinitely)
    assert [numbers(data) for _ in range(3)] == [list(range(5))] * 3


def test_end_of_epoch_stays_at_the_end(accessor: Make) -> None:
    data = accessor(Stream(2))
    assert numbers(data) == [0, 1]
    with pytest.raises(StopIteration):
        next(data)


def test_interrupted_epochs_begin_again(accessor: Make) -> None:
    data = accessor(Numbers(6))
    for stop in (0, 3):
        for index, item in enumerate(data):
            assert item[0] == index
            if index == stop:
                break
    assert numbers(data) == list(range(6))


def test_a_second_iter_without_use_loses_nothing(accessor: Make) -> None:
    data = accessor(Stream(3))
    iter(data)
    assert numbers(data) == [0, 1, 2]


def test_memory_is_reused(accessor: Make) -> None:
    data = accessor(Stream(4), buffer_size=1)
    iterator = iter(data)
    first = next(iterator)
    kept = first.clone()
    next(iterator)
    assert kept.tolist() == [0, 0]
    assert first.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ((torch.ones(2), torch.zeros(1)), list),
        ([torch.ones(2)], list),
        ({"b": torch.ones(2), "a": torch.zeros(1)}, dict),
        (Pair(torch.ones(2), torch.zeros(1)), Pair),
    ],
)
def test_structures(accessor: Make, element: Any, expected: type) -> None:
    (item,) = accessor([element])
    assert type(item) is expected
    if isinstance(item, dict):
        assert list(item) == ["b", "a"]
    first = item.data if isinstance(item, Pair) else next(iter(_values(item)))
    assert first.tolist() == [1, 1]


def _values(item: Any) -> Any:
    return item.values() if isinstance(item, dict) else item


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Broken(3, good=0), "broken item"),
        ([], "The dataset is empty"),
        ([["text"]], "Item 0 of a dataset element is a str"),
    ],
)
def test_failures_at_the_start(accessor: Make, dataset: Any, message: str) -> None:
    with pytest.raises(poptorch.Error, match="worker thread failed to start") as error:
        accessor(dataset)
    assert message in str(error.value)


def test_failures_later(accessor: Make) -> None:
    data = accessor(Broken(5, good=2))
    with pytest.raises(AssertionError, match=r"(?s)data fetcher.*broken item"):
        list(data)


@pytest.mark.parametrize(
    ("first", "second"),
    [(torch.ones(2), torch.ones(1)), (torch.ones(1, dtype=torch.int32), torch.ones(1))],
)
def test_elements_must_keep_shape_and_type(
    accessor: Make, first: torch.Tensor, second: torch.Tensor
) -> None:
    data = accessor([first, second])
    with pytest.raises(AssertionError, match="same shape and type"):
        list(data)


def test_integers_may_follow_floats(accessor: Make) -> None:
    data = accessor([torch.zeros(1), torch.tensor([3])])
    assert [item.clone().item() for item in data] == [0.0, 3.0]


def test_slots_fill_up_when_preloading(accessor: Make) -> None:
    lazy = accessor(Numbers(10), buffer_size=3)
    eager = accessor(Numbers(10), buffer_size=3, early_preload=True)
    for data, expected in ((lazy, 1), (eager, 3)):
        assert data._worker is not None
        flags = data._worker._data_buffers.indices_mem
        while int(flags.sum()) < expected:  # the process is still filling
            assert data._worker._process.is_alive()
        assert int(flags.sum()) == expected
    assert numbers(eager) == numbers(lazy) == list(range(10))


def test_terminate_ends_the_process(accessor: Make) -> None:
    data = accessor(Stream(3))
    assert data._worker is not None
    process = data._worker._process
    data.terminate()
    data.terminate()
    assert process not in multiprocessing.active_children()
    with pytest.raises(AssertionError, match="terminated"):
        iter(data)


@pytest.mark.parametrize(
    "strategy", [SharingStrategy.SharedMemory, SharingStrategy.FileSystem]
)
def test_sharing_strategies(accessor: Make, strategy: SharingStrategy) -> None:
    assert numbers(accessor(Numbers(3), sharing_strategy=strategy)) == [0, 1, 2]


def test_length(accessor: Make) -> None:
    assert len(accessor(Numbers(5))) == 5
    source = poptorch.DataLoader(poptorch.Options(), Numbers(10), batch_size=2)
    assert len(accessor(source, rebatched_size=4)) == 10 // 4


def test_rebatched_size_is_checked(accessor: Make) -> None:
    with pytest.raises(AssertionError, match="greater than 1, not 1"):
        accessor(Numbers(4), rebatched_size=1)


def test_a_loader_with_a_rest_needs_rebatching(accessor: Make) -> None:
    source = poptorch.DataLoader(
        poptorch.Options(), Numbers(4), batch_size=2, drop_last=False
    )
    with pytest.raises(AssertionError, match="rebatched_size"):
        accessor(source)


def test_async_loader(loader: Callable[..., Any]) -> None:
    data = loader(Numbers(7), DataLoaderMode.Async, batch_size=2, num_workers=1)
    assert len(data) == 3
    for _ in range(2):
        assert first_values(batch.clone() for batch in data) == [[0, 1], [2, 3], [4, 5]]


def test_async_loader_refuses_a_second_accessor(
    loader: Callable[..., Any], accessor: Make
) -> None:
    data = loader(Numbers(4), DataLoaderMode.Async)
    with pytest.raises(poptorch.Error, match="already has"):
        accessor(data)


def test_async_with_a_rest_returns_it_last(loader: Callable[..., Any]) -> None:
    data = loader(Numbers(5), DataLoaderMode.Async, batch_size=2, drop_last=False)
    assert len(data) == 3
    for _ in range(2):
        assert first_values(batch.clone() for batch in data) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("worker_size", [None, 1, 3])
@pytest.mark.parametrize("drop_last", [True, False])
def test_rebatching(
    loader: Callable[..., Any], worker_size: int | None, drop_last: bool
) -> None:
    data = loader(
        Numbers(10),
        DataLoaderMode.AsyncRebatched,
        batch_size=4,
        drop_last=drop_last,
        rebatched_worker_size=worker_size,
    )
    expected = [[0, 1, 2, 3], [4, 5, 6, 7]] + ([] if drop_last else [[8, 9]])
    assert len(data) == len(expected)
    for _ in range(2):
        assert first_values(batch.clone() for batch in data) == expected


def test_rebatching_arguments(loader: Callable[..., Any]) -> None:
    mode = DataLoaderMode.AsyncRebatched
    with pytest.raises(AssertionError, match=r"rebatched_worker_size \(5\)"):
        loader(Numbers(10), mode, batch_size=4, rebatched_worker_size=5)
    with pytest.raises(AssertionError, match="async_options"):
        loader(Numbers(10), mode, batch_size=4, async_options={"rebatched_size": 2})


def test_distributed_shuffle_in_the_loading_process() -> None:
    def values(mode: DataLoaderMode) -> list[list[list[int]]]:
        opts = poptorch.Options().randomSeed(7)
        opts.Distributed.configureProcessId(1, 2)
        data = poptorch.DataLoader(
            opts, Numbers(11), batch_size=2, shuffle=True, mode=mode
        )
        epochs = [first_values(b.clone() for b in data) for _ in range(2)]
        data.terminate()
        return epochs

    assert values(DataLoaderMode.Async) == values(DataLoaderMode.Sync)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_dataset_that_cannot_be_pickled(accessor: Make) -> None:
    class Local(Numbers):
        pass

    data = accessor(Local(3))
    assert numbers(data) == [0, 1, 2]


def test_only_the_default_way_falls_back(accessor: Make) -> None:
    class Local(Numbers):
        pass

    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        accessor(Local(3), sharing_strategy=SharingStrategy.SharedMemory)
