"""Views as index maps: which element of its source every element of a view is.

A slice, a permutation and a broadcast each map the flat index of the view to a flat
index of the source by an affine function of digits: the index is written in mixed
radix, one digit for each dimension, and every digit moves a stride in the source. A
reshape leaves flat indices as they are. In: shapes. Out: a `View` in normal form, so
that equal maps are equal objects however they came about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Dims = tuple[int, ...]
Digit = tuple[int, int]
"""(number of values, elements of the source that one step moves)"""


@dataclass(frozen=True)
class View:
    """A part of a source of `source_size` elements, in an order of its own.

    Flat index i of the view has the digits d of mixed radix `sizes`, outermost first,
    and is element `offset` + sum of d times `strides` of the source. A stride of 0
    repeats elements. An offset of None is a part whose place a graph does not tell.
    Build views with `of` or the functions below: they are normal then, no digit has
    one value and no two neighbours could be one digit.
    """

    source_size: int
    sizes: Dims
    strides: Dims
    offset: int | None = 0

    @classmethod
    def of(cls, source_size: int, digits: Iterable[Digit], offset: int | None) -> View:
        """The view with these digits, outermost first."""
        normal: list[Digit] = []
        for size, stride in digits:
            # All empty views are one: there is no element to tell them apart.
            if size == 0:
                return cls(source_size, (0,), (0,), 0)
            if size == 1:
                continue
            # One step of the outer digit goes on where the inner one ends.
            if normal and normal[-1][1] == size * stride:
                size *= normal.pop()[0]
            normal.append((size, stride))
        sizes = tuple(size for size, _ in normal)
        return cls(source_size, sizes, tuple(stride for _, stride in normal), offset)

    @property
    def digits(self) -> tuple[Digit, ...]:
        """Sizes with their strides, outermost first."""
        return tuple(zip(self.sizes, self.strides, strict=True))

    @property
    def num_elements(self) -> int:
        """Elements of the view."""
        return math.prod(self.sizes)

    @property
    def num_distinct(self) -> int:
        """Elements of the source that are in the view, repeated ones once."""
        return math.prod(size for size, stride in self.digits if stride)

    @property
    def is_whole(self) -> bool:
        """Whether every element of the source is in the view."""
        return self.num_distinct == self.source_size

    @property
    def is_dense(self) -> bool:
        """Whether all elements between the first and the last are in the view."""
        span = sum((size - 1) * stride for size, stride in self.digits)
        return span + 1 == self.num_distinct

    @property
    def is_identity(self) -> bool:
        """Whether the view is the source itself."""
        is_plain = self.strides in ((), (1,)) and self.offset == 0
        return self.num_elements == self.source_size and (
            is_plain or not self.source_size
        )

    def index_of(self, index: int) -> int:
        """The element of the source that an element of the view is."""
        found = self.offset or 0
        for size, stride in reversed(self.digits):
            index, digit = divmod(index, size)
            found += digit * stride
        return found

    def __str__(self) -> str:
        digits = ",".join(f"{size}x{stride}" for size, stride in self.digits)
        place = "?" if self.offset is None else self.offset
        return f"view[{self.source_size}:{digits}+{place}]"


@dataclass(frozen=True)
class Unknown:
    """A view whose index map a graph does not tell, from one shape to another.

    `place` are the numbers that tell it apart from others between these shapes.
    """

    kind: str
    source: Dims
    result: Dims
    place: Dims = ()

    @property
    def num_distinct(self) -> int:
        """Elements of the source that are in the view, assumed to be distinct."""
        return math.prod(self.result)

    def __str__(self) -> str:
        place = f"@{render_dims(self.place)}" if self.place else ""
        shapes = f"{render_dims(self.source)}:{render_dims(self.result)}"
        return f"{self.kind}[{shapes}{place}]"


Step: TypeAlias = View | Unknown


def permuted(shape: Dims, order: Dims) -> View:
    """Dimension i of the view is dimension `order[i]` of a value of `shape`."""
    strides = strides_of(shape)
    digits = [(shape[dim], strides[dim]) for dim in order]
    return View.of(math.prod(shape), digits, 0)


def inverse(view: View) -> View:
    """The view that undoes a permutation."""
    # Digits sorted by their stride are those of the source, where every one has a
    # weight of its own in the permuted value.
    by_stride = sorted(zip(view.digits, strides_of(view.sizes), strict=True))
    by_stride.sort(key=lambda entry: -entry[0][1])
    return View.of(view.source_size, [(d[0], own) for d, own in by_stride], 0)


def sliced(shape: Dims, starts: Dims | None, sizes: Dims) -> View:
    """The part of a value of `shape` from `starts` on; None is an unknown place."""
    strides = strides_of(shape)
    offset = None if starts is None else _dot(starts, strides)
    return View.of(math.prod(shape), zip(sizes, strides, strict=True), offset)


def repeated(shape: Dims, result: Dims) -> View:
    """A value of `shape` repeated along dimensions where it has one element or none."""
    missing = len(result) - len(shape)
    wide = (1,) * missing + shape
    pairs = zip(wide, strides_of(wide), result, strict=True)
    digits = [(size, stride if own > 1 else 0) for own, stride, size in pairs]
    return View.of(math.prod(shape), digits, 0)


def strides_of(shape: Dims) -> Dims:
    """How far apart neighbours along each dimension are in flat order."""
    strides: list[int] = []
    size = 1
    for dim in reversed(shape):
        strides.append(size)
        size *= dim
    return tuple(reversed(strides))


def _dot(indices: Dims, strides: Dims) -> int:
    return sum(index * stride for index, stride in zip(indices, strides, strict=True))


def render_dims(dims: Dims) -> str:
    return ",".join(map(str, dims))
