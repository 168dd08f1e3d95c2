"""Elements of a dataset in shared memory: their layout and the slots they lie in.

A loading process writes, the program reads, both through the same `SlotRing`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .._arguments.structure import find_parser, has_exact_parser, rebuild
from .._errors import check

__all__ = ["Layout", "SlotRing"]


class _Kind(enum.Enum):
    TENSOR = "tensor"
    SEQUENCE = "sequence"
    DICT = "dict"
    CUSTOM = "custom"


@dataclass(frozen=True)
class Layout:
    """What the elements of a dataset look like around their tensors."""

    kind: _Kind
    keys: tuple[Any, ...] = ()
    template: Any = None

    @staticmethod
    def of(element: Any) -> Layout:
        """The layout of `element`."""
        if isinstance(element, torch.Tensor):
            return Layout(_Kind.TENSOR)
        if isinstance(element, dict):
            return Layout(_Kind.DICT, keys=tuple(element))
        if has_exact_parser(element):
            return Layout(_Kind.CUSTOM, template=_emptied(element))
        return Layout(_Kind.SEQUENCE)

    def take_apart(self, element: Any) -> list[torch.Tensor]:
        """The tensors of `element`; AssertionError if it is laid out differently."""
        tensors = self._parts(element)
        for index, tensor in enumerate(tensors):
            check(
                isinstance(tensor, torch.Tensor),
                f"Item {index} of a dataset element is a {type(tensor).__name__}. An "
                "AsynchronousDataAccessor takes tensors, and flat lists, tuples or "
                "dicts of tensors.",
            )
        return tensors

    def _parts(self, element: Any) -> list[Any]:
        if self.kind is _Kind.TENSOR:
            return [element]
        if self.kind is _Kind.CUSTOM:
            parser = find_parser(element)
            check(parser is not None, "Dataset elements must all have the same type.")
            assert parser is not None
            return list(parser.yieldTensors(element))
        if self.kind is _Kind.DICT:
            check(
                element.keys() == set(self.keys),
                f"Dataset elements must all have the keys {list(self.keys)}, but one "
                f"has {list(element)}.",
            )
            return [element[key] for key in self.keys]
        return list(element)

    def put_together(self, tensors: Sequence[torch.Tensor]) -> Any:
        """An element with these tensors; a sequence becomes a list."""
        if self.kind is _Kind.TENSOR:
            return tensors[0]
        if self.kind is _Kind.DICT:
            return dict(zip(self.keys, tensors, strict=True))
        if self.kind is _Kind.CUSTOM:
            return rebuild(self.template, tensors)
        return list(tensors)


def _emptied(element: Any) -> Any:
    """`element` without its data, so that it can be sent cheaply."""
    parser = find_parser(element)
    assert parser is not None
    empty = [tensor.new_empty(0) for tensor in parser.yieldTensors(element)]
    return parser.reconstruct(element, iter(empty))


class SlotRing:
    """A few slots, each with room for all tensors of one element.

    `indices_mem` tells for each slot whether it holds an element nobody has
    finished reading.
    """

    def __init__(self, buffers: list[torch.Tensor], indices_mem: torch.Tensor) -> None:
        self._buffers = buffers
        self.indices_mem = indices_mem

    @staticmethod
    def allocate(
        tensors: Sequence[torch.Tensor], num_slots: int, num_rows: int | None
    ) -> SlotRing:
        """Slots for elements like `tensors`; `num_rows` replaces their dimension 0."""
        buffers = [
            torch.empty(
                (num_slots, *_slot_shape(tensor, num_rows)), dtype=tensor.dtype
            ).share_memory_()
            for tensor in tensors
        ]
        flags = torch.zeros(num_slots, dtype=torch.bool).share_memory_()
        return SlotRing(buffers, flags)

    @property
    def num_slots(self) -> int:
        """How many elements there is room for."""
        return len(self.indices_mem)

    def read(self, slot: int, num_rows: int | None) -> list[torch.Tensor]:
        """Views of the tensors in `slot`, of their first `num_rows` rows if given."""
        views = [buffer[slot] for buffer in self._buffers]
        if num_rows is None:
            return views
        return [view[:num_rows] for view in views]

    def write(self, slot: int, tensors: Sequence[torch.Tensor]) -> None:
        """Fill `slot` with one element."""
        for view, tensor in zip(self.read(slot, None), tensors, strict=True):
            _check_fits(view, tensor, 0)
            view.copy_(tensor)

    def write_rows(
        self, slot: int, first_row: int, tensors: Sequence[torch.Tensor]
    ) -> int:
        """Put rows into `slot` from `first_row` on; returns how many had room."""
        num_rows = 0
        for view, tensor in zip(self.read(slot, None), tensors, strict=True):
            _check_fits(view, tensor, 1)
            num_rows = min(len(tensor), len(view) - first_row)
            view[first_row : first_row + num_rows].copy_(tensor[:num_rows])
        return num_rows


def _slot_shape(tensor: torch.Tensor, num_rows: int | None) -> tuple[int, ...]:
    if num_rows is None:
        return tuple(tensor.shape)
    return (num_rows, *tensor.shape[1:])


def _check_fits(view: torch.Tensor, tensor: torch.Tensor, from_dim: int) -> None:
    """AssertionError where copying would broadcast or lose fractions."""
    is_same_shape = view.shape[from_dim:] == tensor.shape[from_dim:]
    check(
        is_same_shape and torch.can_cast(tensor.dtype, view.dtype),
        "All elements of the dataset must have the same shape and type: expected "
        f"{tuple(view.shape)} {view.dtype} but got {tuple(tensor.shape)} "
        f"{tensor.dtype}. Use drop_last=True or pad the last batch.",
    )
