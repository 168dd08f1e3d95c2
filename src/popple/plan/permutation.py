"""Permutations of dimensions in a normal form, so that inverse ones cancel."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_FORM = re.compile(r"permute\[([\d,]+):([\d,]+)\]$")


@dataclass(frozen=True)
class Permutation:
    """Dimension i of the result is dimension `order[i]` of a value of `shape`."""

    shape: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Permutation | None:
        """The permutation that `str` printed, or None for other text."""
        if (found := _FORM.match(text)) is None:
            return None
        shape, order = (tuple(map(int, part.split(","))) for part in found.groups())
        return cls(shape, order)

    @property
    def is_identity(self) -> bool:
        """Whether the flat order of the elements stays."""
        return self.order == tuple(sorted(self.order))

    @property
    def result(self) -> tuple[int, ...]:
        """Shape of the permuted value."""
        return tuple(self.shape[dim] for dim in self.order)

    def inverse(self) -> Permutation:
        """The permutation that undoes this one."""
        back = tuple(self.order.index(dim) for dim in range(len(self.order)))
        return Permutation(self.result, back)

    def then(self, after: Permutation) -> Permutation | None:
        """Both in one, if `after` starts from the shape this one ends with."""
        if after.shape != self.result:
            return None
        return Permutation(self.shape, tuple(self.order[dim] for dim in after.order))

    def normal(self) -> Permutation:
        """The same move without dimensions of size 1, neighbours that stay joined."""
        kept = [dim for dim in self.order if self.shape[dim] != 1]
        groups: list[list[int]] = []
        for dim in kept:
            if groups and self._follows(groups[-1][-1], dim):
                groups[-1].append(dim)
            else:
                groups.append([dim])
        ordered = sorted(groups)
        shape = tuple(math.prod(self.shape[dim] for dim in g) for g in ordered)
        return Permutation(shape, tuple(ordered.index(group) for group in groups))

    def _follows(self, first: int, second: int) -> bool:
        """Whether only dimensions of size 1 lie between two of the source's."""
        between = self.shape[first + 1 : second]
        return first < second and all(size == 1 for size in between)

    def __str__(self) -> str:
        shape, order = (",".join(map(str, part)) for part in (self.shape, self.order))
        return f"permute[{shape}:{order}]"
