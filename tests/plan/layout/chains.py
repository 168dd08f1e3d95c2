"""Chains of views: random ones, other ways to take them, and what NumPy makes of them.

A link of a chain reshapes what came before and then permutes or slices it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from popple.plan.layout import Dims, View, permuted, sliced

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Permute:
    """Dimensions of a value of `shape` in another order."""

    shape: Dims
    order: Dims

    @property
    def result(self) -> Dims:
        return tuple(self.shape[dim] for dim in self.order)

    def view(self) -> View:
        return permuted(self.shape, self.order)

    def apply(self, values: Indices) -> Indices:
        return values.reshape(self.shape).transpose(self.order).ravel()

    def by(self, middle: Dims) -> tuple[Permute, Permute]:
        """The same with another order in between."""
        first = Permute(self.shape, middle)
        rest = tuple(middle.index(dim) for dim in self.order)
        return first, Permute(first.result, rest)


@dataclass(frozen=True)
class Slice:
    """`size` neighbours from `start` on along one dimension of a value of `shape`."""

    shape: Dims
    dim: int
    start: int
    size: int

    @property
    def result(self) -> Dims:
        return (*self.shape[: self.dim], self.size, *self.shape[self.dim + 1 :])

    def view(self) -> View:
        starts = tuple(self.start * (d == self.dim) for d in range(len(self.shape)))
        return sliced(self.shape, starts, self.result)

    def apply(self, values: Indices) -> Indices:
        kept = range(self.start, self.start + self.size)
        return values.reshape(self.shape).take(kept, axis=self.dim).ravel()

    def by(self, before: int, after: int) -> tuple[Slice, Slice]:
        """The same in two: elements to leave before and after it come off later."""
        first = Slice(
            self.shape, self.dim, self.start - before, before + self.size + after
        )
        return first, Slice(first.result, self.dim, before, self.size)


Link = Permute | Slice


@st.composite
def shapes(draw: st.DrawFn, size: int) -> Dims:
    """A shape of so many elements, with a dimension of 1 now and then."""
    dims: list[int] = []
    while size > 1 and len(dims) < 4:
        divisors = [n for n in range(2, size + 1) if size % n == 0]
        dims.append(draw(st.sampled_from(divisors)))
        size //= dims[-1]
    if draw(st.integers(0, 4)) == 0:
        dims.insert(draw(st.integers(0, len(dims))), 1)
    return tuple(dims) if size == 1 else (*dims, size)


@st.composite
def links(draw: st.DrawFn, size: int) -> Link:
    """A view of a value of so many elements."""
    shape = draw(shapes(size))
    if not shape or draw(st.booleans()):
        return Permute(shape, tuple(draw(st.permutations(range(len(shape))))))
    dim = draw(st.integers(0, len(shape) - 1))
    start = draw(st.integers(0, shape[dim] - 1))
    return Slice(shape, dim, start, draw(st.integers(1, shape[dim] - start)))


@st.composite
def chains(draw: st.DrawFn, size: int, max_links: int = 5) -> tuple[Link, ...]:
    """Views of a value of `size` elements, of the view, and so on."""
    found: list[Link] = []
    for _ in range(draw(st.integers(1, max_links))):
        found.append(draw(links(size)))
        size = math.prod(found[-1].result)
    return tuple(found)


@st.composite
def detours(draw: st.DrawFn, chain: Iterable[Link]) -> tuple[Link, ...]:
    """Another chain with the same result: every link in two, and some undone again."""
    found: list[Link] = []
    for link in chain:
        if draw(st.booleans()):
            found += draw(_round_trip(math.prod(link.shape)))
        if isinstance(link, Permute):
            middle = tuple(draw(st.permutations(range(len(link.shape)))))
            found += link.by(middle)
        else:
            left = link.shape[link.dim] - link.start - link.size
            before = draw(st.integers(0, link.start))
            found += link.by(before, draw(st.integers(0, left)))
    return tuple(found)


@st.composite
def _round_trip(draw: st.DrawFn, size: int) -> tuple[Link, Link]:
    shape = draw(shapes(size))
    there = Permute(shape, tuple(draw(st.permutations(range(len(shape))))))
    back = tuple(there.order.index(dim) for dim in range(len(shape)))
    return there, Permute(there.result, back)


def indices_of(chain: Iterable[Link], size: int) -> Indices:
    """Which element of the source every element of the last view is."""
    values = np.arange(size)
    for link in chain:
        values = link.apply(values)
    return values
