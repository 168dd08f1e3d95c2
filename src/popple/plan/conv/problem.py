"""ConvProblem: the normal form of every matrix product and convolution.

A matrix product is a convolution with kernel 1 whose field are the rows; the gradients
of a convolution are convolutions with exchanged roles. In: shapes and attributes of an
op. Out: one frozen description that the planner searches splits for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from popple.errors import PlanError
from popple.graph import DType
from popple.units import ceil_div

Dims = tuple[int, ...]


class Purpose(Enum):
    """What a problem computes: it says how its operands lie before and after.

    Matrix products are laid out for exchanged operands, and so is the result of a
    weight gradient; the operands of the latter have the wrong dimension innermost.
    """

    CONV = "conv"
    WEIGHT_GRAD = "weight gradient"
    MATMUL = "matmul"
    LINEAR = "linear layer"
    LINEAR_INPUT_GRAD = "input gradient of a linear layer"
    LINEAR_WEIGHT_GRAD = "weight gradient of a linear layer"

    @property
    def is_product(self) -> bool:
        """Whether it is a matrix product."""
        return self is Purpose.MATMUL or self.is_linear

    @property
    def is_linear(self) -> bool:
        """Whether it is a product of a layer whose products were planned together."""
        return self in (
            Purpose.LINEAR,
            Purpose.LINEAR_INPUT_GRAD,
            Purpose.LINEAR_WEIGHT_GRAD,
        )


@dataclass(frozen=True)
class ConvProblem:
    """A convolution of `batch` fields of `in_channels` for each of `groups` groups.

    Channels count per group. `padding` is what is added before and after each
    dimension together (negative: cut off), `padding_before` the part before, by default
    half. `upsampling` is the number of positions a
    field element takes up, zeros in between: the stride of the convolution whose input
    gradient this is. `partials` is the type sums are kept in, `output` that of the
    result.
    """

    batch: int
    groups: int
    field: Dims
    kernel: Dims
    in_channels: int
    out_channels: int
    stride: Dims
    padding: Dims
    dilation: Dims
    dtype: DType
    partials: DType
    output: DType
    upsampling: Dims = ()
    padding_before: Dims = ()
    purpose: Purpose = Purpose.CONV

    def __post_init__(self) -> None:
        if not self.upsampling:
            # Frozen, so that problems can be keys of the search's cache.
            object.__setattr__(self, "upsampling", (1,) * len(self.field))
        if not self.padding_before:
            half = tuple(pad // 2 for pad in self.padding)
            object.__setattr__(self, "padding_before", half)
        _verify_ranks(self)
        _verify_positive(self)
        if min(self.out_field) < 1:
            raise PlanError(
                f"kernel {list(self.kernel)} does not fit into field "
                f"{list(self.field)} with padding {list(self.padding)}.",
                remedy="Use a larger field, more padding or a smaller kernel.",
            )

    @property
    def padded_field(self) -> Dims:
        """Positions of each field dimension, zeros in between and around counted."""
        zipped = zip(self.field, self.upsampling, self.padding, strict=True)
        return tuple((n - 1) * step + 1 + pad for n, step, pad in zipped)

    @property
    def out_field(self) -> Dims:
        """Positions of each output dimension."""
        spans = ((k - 1) * d for k, d in zip(self.kernel, self.dilation, strict=True))
        zipped = zip(self.padded_field, spans, self.stride, strict=True)
        return tuple((n - span - 1) // step + 1 for n, span, step in zipped)

    @property
    def active_field(self) -> Dims:
        """Output positions that one kernel element contributes to, at most.

        Products with the zeros of upsampling and padding are never computed.
        """
        zipped = zip(
            self.out_field, self.upsampling, self.field, self.stride, strict=True
        )
        return tuple(
            min(ceil_div(out, zeros), ceil_div(n, step))
            for out, zeros, n, step in zipped
        )

    @cached_property
    def num_macs(self) -> int:
        """Multiplications and additions, those with zeros left out."""
        pairs = math.prod(map(self._count_pairs, range(len(self.field))))
        return self.batch * pairs * self.groups * self.in_channels * self.out_channels

    def _count_pairs(self, dim: int) -> int:
        """Pairs of output and kernel position that meet a field element."""
        before = self.padding_before[dim]
        end = (self.field[dim] - 1) * self.upsampling[dim] + 1
        stride, period = self.stride[dim], self.upsampling[dim]
        outputs = np.arange(self.out_field[dim], dtype=np.int64) * stride - before
        window = np.arange(self.kernel[dim], dtype=np.int64) * self.dilation[dim]
        # The shorter one in Python: positions of the other are tested at once.
        short, long = sorted((outputs, window), key=len)
        total = 0
        for offset in short.tolist():
            at = long + offset
            total += int(np.sum((at >= 0) & (at < end) & (at % period == 0)))
        return total

    @property
    def num_inputs(self) -> int:
        """Elements of the field operand."""
        return self.batch * self.groups * self.in_channels * math.prod(self.field)

    @property
    def num_weights(self) -> int:
        """Elements of the kernel operand."""
        channels = self.groups * self.in_channels * self.out_channels
        return channels * math.prod(self.kernel)

    @property
    def num_outputs(self) -> int:
        """Elements of the result."""
        return self.batch * self.groups * self.out_channels * math.prod(self.out_field)

    @property
    def is_matmul(self) -> bool:
        """Whether batch and field are just rows of a matrix: the kernel is 1."""
        return math.prod(self.kernel) == 1

    @property
    def num_rows(self) -> int:
        """Rows of the matrix product, if it is one."""
        return self.batch * math.prod(self.active_field)


def matmul_problem(
    groups: int,
    shape: tuple[int, int, int],
    dtype: DType,
    partials: DType,
    output: DType,
) -> ConvProblem:
    """`groups` products of [M,K] by [K,N], `shape` being (M, K, N)."""
    rows, inner, columns = shape
    return ConvProblem(
        batch=1,
        groups=groups,
        field=(rows,),
        kernel=(1,),
        in_channels=inner,
        out_channels=columns,
        stride=(1,),
        padding=(0,),
        dilation=(1,),
        dtype=dtype,
        partials=partials,
        output=output,
        purpose=Purpose.MATMUL,
    )


def _verify_ranks(problem: ConvProblem) -> None:
    rank = len(problem.field)
    names = ("kernel", "stride", "padding", "dilation")
    names += ("upsampling", "padding_before")
    for name in names:
        dims: Dims = getattr(problem, name)
        if len(dims) != rank:
            raise PlanError(
                f"{name} {list(dims)} has {len(dims)} dimensions, the field "
                f"{list(problem.field)} has {rank}.",
                remedy=f"Give one {name} for each field dimension.",
            )


def _verify_positive(problem: ConvProblem) -> None:
    counts = {
        "batch": (problem.batch,),
        "groups": (problem.groups,),
        "field": problem.field,
        "kernel": problem.kernel,
        "input channels": (problem.in_channels,),
        "output channels": (problem.out_channels,),
        "stride": problem.stride,
        "dilation": problem.dilation,
        "upsampling": problem.upsampling,
    }
    for name, dims in counts.items():
        if not dims or min(dims) < 1:
            raise PlanError(
                f"{name} is {list(dims)}: nothing is left to compute.",
                remedy="Matrix products and convolutions need non-empty dimensions.",
            )
