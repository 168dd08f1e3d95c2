"""Datasets for loader tests, importable by the processes that loaders start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch

import poptorch


class Numbers(torch.utils.data.Dataset[torch.Tensor]):
    """Item i is the vector (i, i)."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        if index >= self.length:
            raise IndexError
        return torch.full((2,), float(index))


class Stream(torch.utils.data.IterableDataset[torch.Tensor]):
    """The same items, without a length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __iter__(self) -> Iterator[torch.Tensor]:
        return (torch.full((2,), float(index)) for index in range(self.length))


class Broken(Numbers):
    """Fails from item `good` on."""

    def __init__(self, length: int, good: int) -> None:
        super().__init__(length)
        self.good = good

    def __getitem__(self, index: int) -> torch.Tensor:
        if index >= self.good:
            raise RuntimeError("broken item")
        return super().__getitem__(index)


class Pair:
    """A user's own type of batch."""

    def __init__(self, data: torch.Tensor, label: torch.Tensor) -> None:
        self.data = data
        self.label = label


class PairParser(poptorch.ICustomArgParser):
    """Knows `Pair`."""

    def yieldTensors(self, struct: Pair) -> Iterator[torch.Tensor]:
        yield struct.data
        yield struct.label

    def reconstruct(
        self, original_structure: Any, tensor_iterator: Iterator[torch.Tensor]
    ) -> Pair:
        return Pair(*tensor_iterator)


# At import, so that a loading process knows the type as well.
poptorch.registerCustomArgParser(Pair, PairParser())


def first_values(batches: Any) -> list[list[int]]:
    """The numbers in each batch of `Numbers`."""
    return [[int(item[0]) for item in batch] for batch in batches]


class Deadly(Numbers):
    """Ends the process that asks for item `last`, with no time for last words."""

    def __init__(self, length: int, last: int) -> None:
        super().__init__(length)
        self.last = last

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == self.last:
            os._exit(3)
        return super().__getitem__(index)
