"""`DataLoader`: torch's loader, with batches as large as one call of the model.

One call consumes batch_size * deviceIterations * gradientAccumulation *
(replicationFactor / input group size) items, the *combined* batch size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch.utils.data

from .._arguments.structure import flatten_tensors, rebuild
from .._errors import Error, check
from ..enums import DataLoaderMode
from ..options import Options
from .accessor import AsynchronousDataAccessor
from .checks import (
    Units,
    check_iterable,
    check_remainder,
    check_sampler,
    find_length,
    watch_workers,
)
from .partition import DatasetPart

__all__ = ["DataLoader"]


class DataLoader(torch.utils.data.DataLoader[Any]):
    """Batches of a dataset, each as large as one call of the model.

    In a distributed program each process sees its own part of the dataset.
    """

    def __init__(
        self,
        options: Options,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        num_workers: int = 0,
        drop_last: bool = True,
        persistent_workers: bool | None = None,
        auto_distributed_partitioning: bool = True,
        mode: DataLoaderMode = DataLoaderMode.Sync,
        async_options: dict[str, Any] | None = None,
        rebatched_worker_size: int | None = None,
        batch_sampler: Any = None,
        **kwargs: Any,
    ) -> None:
        """Read `dataset`, with torch's other arguments in `kwargs`.

        batch_size: items of one micro-batch. auto_distributed_partitioning: give each
        process its part. mode: where batches are made. async_options: arguments of the
        AsynchronousDataAccessor. rebatched_worker_size: items loaded at a time.
        """
        check(
            isinstance(options, Options),
            f"Expected poptorch.Options, not {type(options).__name__}.",
        )
        self._accessor: AsynchronousDataAccessor | None = None
        self._has_user_sampler = batch_sampler is not None
        self._is_shuffled_here = False
        self._drops_rest = self.rebatched_drop_last = drop_last
        is_parted = (
            auto_distributed_partitioning and options.Distributed.numProcesses > 1
        )
        if self._has_user_sampler:
            check_sampler(batch_size, shuffle, is_parted)
            batch_size = getattr(batch_sampler, "batch_size", batch_size)
        options._freeze()
        self._set_sizes(options, batch_size)
        if isinstance(dataset, torch.utils.data.IterableDataset):
            check_iterable(num_workers, is_parted, kwargs.get("worker_init_fn"))
        else:
            self._check_whole_batches(options, dataset, batch_sampler, is_parted)
            if is_parted:
                dataset = self._own_part(options, dataset, bool(shuffle))
        rebatched_size = self._find_rebatched_size(mode)
        super().__init__(
            dataset,
            batch_size=self._torch_batch_size(rebatched_size, rebatched_worker_size),
            shuffle=None if self._has_user_sampler else self._torch_shuffle(shuffle),
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            drop_last=self._torch_drop_last(rebatched_size),
            persistent_workers=(
                num_workers > 0 if persistent_workers is None else persistent_workers
            ),
            **kwargs,
        )
        if mode != DataLoaderMode.Sync:
            self._accessor = self._load_ahead(async_options or {}, rebatched_size)

    def _set_sizes(self, options: Options, batch_size: int | None) -> None:
        self._combined_batch_size: int | None = None
        self._num_batches_to_combine = 1
        if batch_size is None:
            return
        num_groups = options.replication_factor // options.input_group_size
        self._num_batches_to_combine = (
            options.device_iterations
            * options.Training.gradient_accumulation
            * num_groups
        )
        self._combined_batch_size = batch_size * self._num_batches_to_combine
        self._options = options

    def _check_whole_batches(
        self, options: Options, dataset: Any, batch_sampler: Any, is_parted: bool
    ) -> None:
        if self._combined_batch_size is None:
            return
        if batch_sampler is not None:
            units = Units("batches of the batch sampler", find_length(batch_sampler))
            check_remainder(
                units, self._num_batches_to_combine, self._drops_rest, options
            )
            return
        units = Units("items of the dataset", len(dataset))
        num_processes = options.Distributed.numProcesses if is_parted else 1
        step = self._combined_batch_size * num_processes
        check_remainder(units, step, self._drops_rest, options)

    def _own_part(self, options: Options, dataset: Any, shuffle: bool) -> DatasetPart:
        has_seed = options.exists("random_seed")
        check(
            not shuffle or has_seed,
            "Shuffling a dataset that is partitioned automatically needs "
            "options.randomSeed(), the same in all processes.",
        )
        check(
            self._combined_batch_size is not None,
            "batch_size=None does not go with auto_distributed_partitioning.",
        )
        assert self._combined_batch_size is not None
        self._is_shuffled_here = shuffle
        return DatasetPart(
            dataset,
            options.Distributed.processId,
            options.Distributed.numProcesses,
            self._combined_batch_size,
            self._drops_rest,
            options.random_seed if has_seed else None,
        )

    def _find_rebatched_size(self, mode: DataLoaderMode) -> int | None:
        """Rows to which the loading process puts pieces together, if it does.

        A short last batch has no slot of its own size, so Async loads that keep it
        are put together too.
        """
        has_rest = not self._drops_rest and (self._combined_batch_size or 1) > 1
        is_rebatched = mode == DataLoaderMode.AsyncRebatched
        if is_rebatched or (mode == DataLoaderMode.Async and has_rest):
            return self._combined_batch_size
        return None

    def _torch_batch_size(
        self, rebatched_size: int | None, worker_size: int | None
    ) -> int | None:
        if self._has_user_sampler:
            return 1
        if rebatched_size is None or worker_size is None:
            return self._combined_batch_size
        check(
            worker_size <= rebatched_size,
            f"The rebatched_worker_size ({worker_size}) must not be larger than the "
            f"combined batch size ({rebatched_size}).",
        )
        return worker_size

    def _torch_shuffle(self, shuffle: bool | None) -> bool:
        return bool(shuffle) and not self._is_shuffled_here

    def _torch_drop_last(self, rebatched_size: int | None) -> bool:
        if self._has_user_sampler or rebatched_size is not None:
            return False
        return self._drops_rest

    def _load_ahead(
        self, async_options: dict[str, Any], rebatched_size: int | None
    ) -> AsynchronousDataAccessor:
        check(
            "rebatched_size" not in async_options,
            "rebatched_size cannot be given in async_options: the loader sets it. Use "
            "mode=DataLoaderMode.AsyncRebatched.",
        )
        return AsynchronousDataAccessor(
            self, **async_options, rebatched_size=rebatched_size
        )

    def _check_async_use(self, rebatched_size: int | None) -> None:
        """Raise if an accessor cannot read from this loader."""
        if self._accessor is not None:
            raise Error(
                "The DataLoader already has an AsynchronousDataAccessor. Iterate over "
                "the loader, or make it with mode=poptorch.DataLoaderMode.Sync."
            )
        has_rest = not self._has_user_sampler and not self.drop_last
        check(
            rebatched_size is not None
            or not has_rest
            or self._combined_batch_size in (None, 1),
            "A DataLoader with drop_last=False can only be read with rebatched_size.",
        )

    def __len__(self) -> int:
        size = self._accessor.rebatched_size if self._accessor is not None else None
        if size is None:
            return super().__len__()
        num_items = len(self.dataset)  # pyright: ignore[reportArgumentType]
        has_rest = not self._drops_rest and num_items % size > 0
        return num_items // size + has_rest

    @property
    def combinedBatchSize(self) -> int | None:
        """Items one call of the model consumes."""
        return self._combined_batch_size

    @property
    def options(self) -> Options:
        """The options the loader was made with."""
        return self._options

    def terminate(self) -> None:
        """End the loading process of an Async loader."""
        if self._accessor is not None:
            self._accessor.terminate()

    def __del__(self) -> None:
        if getattr(self, "_accessor", None) is not None:
            self.terminate()

    def __iter__(self) -> Any:
        if self._accessor is not None:
            return iter(self._accessor)
        if self._is_shuffled_here:
            assert isinstance(self.dataset, DatasetPart)
            self.dataset.begin_shuffled_epoch()
        batches: Iterator[Any] = super().__iter__()
        if self.num_workers:
            batches = watch_workers(batches)
        if self._has_user_sampler and self._num_batches_to_combine != 1:
            return _combined(batches, self._num_batches_to_combine, self._drops_rest)
        return batches


def _combined(
    batches: Iterable[Any], num_batches: int, drops_rest: bool
) -> Iterator[Any]:
    """`num_batches` batches at a time, joined on dimension 0."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if len(waiting) == num_batches:
            yield _joined(waiting)
            waiting = []
    if waiting and not drops_rest:
        yield _joined(waiting)


def _joined(batches: list[Any]) -> Any:
    columns = zip(*(flatten_tensors(batch) for batch in batches), strict=True)
    return rebuild(batches[0], [torch.cat(column) for column in columns])
