"""Images with channels last or second: how ops on windows see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from popple.capture.tensorflow.builder import Order, inverse, reorder
from popple.capture.tensorflow.context import OpContext
from popple.graph import TensorType


@dataclass(frozen=True)
class Layout:
    """Where the dimensions of an image lie: `order` puts channels second.

    `field` are the positions of the field dimensions in attributes and shapes.
    """

    order: Order
    field: tuple[int, ...]

    def first(self, context: OpContext, name: str) -> str:
        """The image with channels second."""
        return context.permute(name, self.order, ".channels_first")

    def last(self, context: OpContext, name: str) -> str:
        """An image with channels second as the program wants it."""
        return context.permute(name, inverse(self.order), "")

    def type_first(self, kind: TensorType) -> TensorType:
        """The type of an image once its channels are second."""
        return TensorType(kind.dtype, reorder(kind.shape, self.order))

    def of_field(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """The numbers of the field dimensions among those of all dimensions."""
        return tuple(int(numbers[dim]) for dim in self.field)


def layout_of(context: OpContext, rank: int) -> Layout:
    """The layout of an op's images of this rank, by its attribute `data_format`."""
    if str(context.attr("data_format", "NHWC")).startswith("NC"):
        return Layout(tuple(range(rank)), tuple(range(2, rank)))
    field = tuple(range(1, rank - 1))
    return Layout((0, rank - 1, *field), field)


@dataclass(frozen=True)
class Padding:
    """Elements added before and after each field dimension."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def same_padding(
    field: Sequence[int],
    result: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Padding:
    """What TensorFlow's padding "SAME" adds: an odd element goes to the end."""
    sizes = zip(field, result, kernel, stride, dilation, strict=True)
    totals = [
        max((out - 1) * step + (size - 1) * space + 1 - n, 0)
        for n, out, size, step, space in sizes
    ]
    before = tuple(total // 2 for total in totals)
    return Padding(before, tuple(t - b for t, b in zip(totals, before, strict=True)))
