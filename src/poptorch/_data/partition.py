"""A process's own part of a dataset that several processes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._errors import Error, check

__all__ = ["DatasetPart"]


class DatasetPart:
    """Consecutive items of `dataset`, for process `process_id` of `num_processes`.

    drop_last: every process gets the same whole number of steps (items a call
    consumes), the rest of the dataset is left out; else the items are split evenly.
    When shuffled, all processes draw the same permutation of the whole dataset from
    the seed, and every other epoch begins after the items left out before.
    """

    def __init__(
        self,
        dataset: Any,
        process_id: int,
        num_processes: int,
        step: int,
        drop_last: bool,
        seed: int | None,
    ) -> None:
        self._dataset = dataset
        sizes = _part_sizes(len(dataset), num_processes, step, drop_last)
        self._length = sizes[process_id]
        self._num_left_out = len(dataset) - sum(sizes)
        self._base_offset = sum(sizes[:process_id])
        self._seed = seed
        self._generator: torch.Generator | None = None
        self._order: torch.Tensor | None = None
        # In shared memory: loader processes that live on must see each new epoch.
        self._offset = torch.tensor(self._base_offset).share_memory_()

    def begin_shuffled_epoch(self) -> None:
        """Draw the next permutation and move the window."""
        order = torch.randperm(len(self._dataset), generator=self._random_numbers())
        if self._order is None:
            self._order = order.share_memory_()
        else:
            self._order.copy_(order)
        is_at_base = int(self._offset) == self._base_offset
        moved = self._base_offset + self._num_left_out
        self._offset.fill_(moved if is_at_base else self._base_offset)

    def _random_numbers(self) -> torch.Generator:
        if self._generator is None:
            check(self._seed is not None, "A shared permutation needs a seed.")
            assert self._seed is not None
            self._generator = torch.Generator().manual_seed(self._seed)
        return self._generator

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        position = index + int(self._offset)
        if self._order is not None:
            position = int(self._order[position])
        return self._dataset[position]

    def __getstate__(self) -> dict[str, Any]:
        # Generators do not pickle; what copies do with the part begins from the seed.
        return {**self.__dict__, "_generator": None}


def _part_sizes(
    num_items: int, num_processes: int, step: int, drop_last: bool
) -> Sequence[int]:
    if not drop_last:
        least, rest = divmod(num_items, num_processes)
        return [least + (process < rest) for process in range(num_processes)]
    num_steps = num_items // (step * num_processes)
    if num_steps == 0:
        raise Error(
            f"The dataset has {num_items} items, but one step of {num_processes} "
            f"processes takes {step * num_processes} ({num_processes} x {step}). Use "
            "fewer processes, a smaller batch size, fewer deviceIterations, less "
            "gradientAccumulation or drop_last=False."
        )
    return [step * num_steps] * num_processes
