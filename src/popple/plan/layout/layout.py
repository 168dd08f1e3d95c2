"""Layout: where the elements of a value lie, relative to each other.

A base order and the views taken since. A rule that lays a value out says in which
order: flat, in groups along a dimension, or one of its own that it names. Orders made
of another layout keep it: a reduction where the data lie, the part of one replica, a
ring of copies. Equal layouts with equal bytes on every tile mean that nothing need
move. Rules ask a layout what they want to know; its text is for people.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from popple.errors import PlanError
from popple.plan.layout.compose import append_view
from popple.plan.layout.tiles import JointTiles, Tiles
from popple.plan.layout.views import Dims, Step, View, render_dims, strides_of

# A run that no group ends: more elements than a tile holds of any type.
LONG_RUN = 1 << 20

_NAME = re.compile(r"[a-z][a-z ]*[a-z]")
RESERVED_NAMES = frozenset({"linear", "grouped", "reduced", "part", "ring", "view"})


@dataclass(frozen=True)
class Adjacency:
    """`group` elements whose flat indices differ by `stride` are memory neighbours."""

    stride: int
    group: int


FLAT_ADJACENCY = Adjacency(1, LONG_RUN)
NO_ADJACENCY = Adjacency(1, 1)


def adjacency_of_axis(shape: Dims, axis: int, group: int) -> Adjacency:
    """Neighbours along one dimension of a shape."""
    return Adjacency(math.prod(shape[axis + 1 :]), group)


@dataclass(frozen=True)
class Flat:
    """Elements in flat order from `first_tile` on, past the last tile to the front."""

    first_tile: int = 0

    @property
    def adjacency(self) -> Adjacency:
        """Neighbours in flat order are neighbours in memory."""
        return FLAT_ADJACENCY

    def __str__(self) -> str:
        return f"linear+{self.first_tile}" if self.first_tile else "linear"


@dataclass(frozen=True)
class Grouped:
    """A value of `shape` in which `group` neighbours along `axis` are adjacent.

    Groups are dealt over tiles as `tiles` says.
    """

    shape: Dims
    axis: int
    group: int
    tiles: Tiles

    @property
    def adjacency(self) -> Adjacency:
        """Neighbours along the dimension."""
        return adjacency_of_axis(self.shape, self.axis, self.group)

    def __str__(self) -> str:
        shape = render_dims(self.shape)
        return f"grouped[{shape}/{self.axis}:{self.group}|{self.tiles}]"


@dataclass(frozen=True)
class Named:
    """An order that only its own rule knows, told apart by name and numbers."""

    name: str
    numbers: Dims = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in RESERVED_NAMES:
            raise PlanError(
                f"{self.name!r} cannot name an order of elements.",
                remedy="Use lower-case words that no other kind of order has.",
            )

    @property
    def adjacency(self) -> Adjacency:
        """As in flat order: nothing better is known."""
        return FLAT_ADJACENCY

    def __str__(self) -> str:
        numbers = f"[{render_dims(self.numbers)}]" if self.numbers else ""
        return self.name + numbers


@dataclass(frozen=True)
class Reduced:
    """Sums, or the like, made where the data lie; `kept` marks dimensions that stay."""

    source: Layout
    kept: tuple[bool, ...]

    @property
    def adjacency(self) -> Adjacency:
        """That of the data: results stand for the elements they were made of."""
        return self.source.adjacency

    def __str__(self) -> str:
        return f"reduced[{render_dims(tuple(map(int, self.kept)))}]({self.source})"


@dataclass(frozen=True)
class Part:
    """One of `replicas` equal parts of a value, on the tiles of the whole."""

    whole: Layout
    replicas: int

    @property
    def adjacency(self) -> Adjacency:
        """That of the whole."""
        return self.whole.adjacency

    def __str__(self) -> str:
        return f"part[{self.replicas}]({self.whole})"


@dataclass(frozen=True)
class Ring:
    """Several copies of a value beside each other, each as `entry` lies."""

    entry: Layout

    @property
    def adjacency(self) -> Adjacency:
        """As in flat order: a ring is only copied as a whole."""
        return FLAT_ADJACENCY

    def __str__(self) -> str:
        return f"ring({self.entry})"


Order: TypeAlias = Flat | Grouped | Named | Reduced | Part | Ring


@dataclass(frozen=True, eq=False)
class Layout:
    """The order of a value's elements on tiles: a base `order`, then `views` of it.

    Views are in normal form, the first one closest to the base: views that fold into
    one are one, and a permutation and its inverse are none.
    """

    order: Order
    views: tuple[Step, ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash((self.order, self.views))

    def __hash__(self) -> int:
        # Nested orders make a hash as deep as the chain of layouts behind it.
        # Plans are looked up by the layouts of their operands: hashed very often.
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # Most comparisons are of different layouts, and end here.
        if not isinstance(other, Layout) or self._hash != other._hash:
            return False
        return self.order == other.order and self.views == other.views

    @property
    def is_linear(self) -> bool:
        """Whether elements lie in flat order, on whatever tile they begin."""
        return isinstance(self.order, Flat) and not self.views

    @property
    def first_tile(self) -> int:
        """The tile on which elements in flat order begin."""
        return self.order.first_tile if isinstance(self.order, Flat) else 0

    def is_ordered_as(self, other: Layout) -> bool:
        """Whether elements follow each other in the same order, from any tile on."""
        return self._from_first_tile() == other._from_first_tile()

    def _from_first_tile(self) -> Layout:
        # Where groups of a split begin is part of the split: only flat order goes on
        # from any tile.
        order = self.order
        if isinstance(order, Flat):
            return replace(self, order=Flat()) if order.first_tile else self
        if isinstance(order, Reduced):
            order = replace(order, source=order.source._from_first_tile())
        if isinstance(order, Part):
            order = replace(order, whole=order.whole._from_first_tile())
        return self if order is self.order else replace(self, order=order)

    def viewed(self, view: Step) -> Layout:
        """The layout of a view of the value."""
        return Layout(self.order, append_view(self.views, view))

    @cached_property
    def adjacency(self) -> Adjacency:
        """Elements that are adjacent in memory, views followed."""
        adjacency = self.order.adjacency
        for view in self.views:
            # Nothing is known of the others, and most of them keep rows together.
            if isinstance(view, View):
                adjacency = _seen_through(view, adjacency)
        return adjacency

    def find_window(self, num_elements: int) -> tuple[int, int] | None:
        """The stretch of flat indices of the base that a view lies within, if known.

        Of a view with gaps it is the block of the outermost digit: from the first row
        of which something is in the view to the last one. The base has `num_elements`.
        """
        first = self.views[0] if self.views else None
        if not isinstance(self.order, Flat) or not isinstance(first, View):
            return None
        if first.offset is None or first.source_size != num_elements:
            return None
        if first.is_dense:
            return first.offset, first.offset + first.num_distinct
        # Inner digits are not looked at: tiles hold several rows, and which of them
        # have less of a row than others makes no difference worth a run of a vector
        # each.
        stride, size = max((stride, size) for size, stride in first.digits)
        begin = first.offset // stride * stride
        return begin, min(begin + stride * size, first.source_size)

    @property
    def num_distinct(self) -> int | None:
        """Elements of the base that the views show, None if they show it as it is."""
        return min((view.num_distinct for view in self.views), default=None)

    def group_in(self, shape: Dims) -> int:
        """Elements of a value of `shape` in memory order: a group, or a dimension."""
        found = self.adjacency
        size = shape[_axis_of(found.stride, shape)]
        return math.gcd(found.group, size) if found.group < LONG_RUN else size

    def copy_atom(self, wanted: Adjacency) -> int:
        """Elements a rearranging copy moves at once; 0 if an exchange does it all."""
        found = self.adjacency
        # Neighbours are in another dimension: elements come one by one.
        if found.stride != wanted.stride:
            return 1
        # Whole groups lie in one piece already, and an exchange can cut between them.
        if found.group % wanted.group == 0:
            return 0
        return math.gcd(found.group, wanted.group)

    def run_shared_with(self, other: Layout) -> int:
        """Elements that are neighbours in memory in both layouts."""
        here, there = self.adjacency, other.adjacency
        return math.gcd(here.group, there.group) if here.stride == there.stride else 1

    def reduced(self, kept: tuple[bool, ...]) -> Layout:
        """The layout of results that are made where the elements lie."""
        return Layout(Reduced(self, kept))

    def is_reduction_of(self, other: Layout) -> bool:
        """Whether these are results, or views of them, made where `other` lies."""
        order = self.order
        if not isinstance(order, Reduced):
            return False
        return order.source == other or order.source.is_reduction_of(other)

    def part(self, replicas: int) -> Layout:
        """The layout of one replica's part of the value."""
        return Layout(Part(self, replicas))

    @property
    def whole(self) -> Layout:
        """The layout of what this is one replica's part of, or the layout itself."""
        if isinstance(self.order, Part) and not self.views:
            return self.order.whole
        return self

    def ring(self) -> Layout:
        """The layout of several copies of the value side by side."""
        return Layout(Ring(self))

    @property
    def entry(self) -> Layout:
        """The layout of one entry of a ring, or the layout itself."""
        return self.order.entry if isinstance(self.order, Ring) else self

    @cached_property
    def joint_tiles(self) -> JointTiles | None:
        """The split of a linear layer's weights whose tiles these elements lie on."""
        match self.order:
            case Grouped(tiles=JointTiles() as tiles):
                return tiles
            case Reduced(source=inner) | Part(whole=inner) | Ring(entry=inner):
                return inner.joint_tiles
            case _:
                return None

    def __str__(self) -> str:
        return ">".join(map(str, (self.order, *self.views)))


LINEAR = Layout(Flat())


def _seen_through(view: View, adjacency: Adjacency) -> Adjacency:
    """Adjacency in terms of the flat indices of a view."""
    stride = adjacency.stride
    for (size, own), weight in zip(view.digits, strides_of(view.sizes), strict=True):
        # The digit that counts the stride: neighbours differ in it by a multiple.
        if own and own <= stride < own * size:
            return Adjacency(stride // own * weight, adjacency.group)
    # The view has one element of every group.
    return NO_ADJACENCY


def _axis_of(stride: int, shape: Dims) -> int:
    """The dimension that neighbours of a flat stride are apart in."""
    for axis, own in reversed(list(enumerate(strides_of(shape)))):
        if stride < own * shape[axis]:
            return axis
    return 0
