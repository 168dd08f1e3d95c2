"""Splits over tiles that a layout remembers, each of one family of rules.

They tell layouts of one shape and grouping apart, and let a pass of a linear layer see
that weights lie where another pass of it uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from popple.plan.layout.views import Dims


@dataclass(frozen=True)
class ConvTiles:
    """How a convolution or product cut an operand or its result over tiles.

    `role` is which of them: in, weights or out. `field` are shares, the others numbers
    of parts; `out_parts` and `in_parts` are computed in turn. `is_swapped` says that
    the operands changed roles.
    """

    role: str
    groups: int
    field: Dims
    kernel: int
    ins: int
    outs: int
    out_parts: int = 1
    in_parts: int = 1
    is_swapped: bool = False
    first_tile: int = 0

    def __str__(self) -> str:
        field = "x".join(map(str, self.field))
        parts = f"g{self.groups}f{field}k{self.kernel}i{self.ins}o{self.outs}"
        # Only what differs from the rule is told.
        swap = "swap " if self.is_swapped else ""
        place = f" from tile {self.first_tile}" if self.first_tile else ""
        serial = f"s{self.out_parts}.{self.in_parts}"
        return f"{self.role} {swap}{parts}{serial}{place}"


@dataclass(frozen=True)
class JointTiles:
    """How the weights of a linear layer are cut for all of its passes together."""

    groups: int
    inputs: int
    outputs: int

    def __str__(self) -> str:
        return f"joint g{self.groups}i{self.inputs}o{self.outputs}"


@dataclass(frozen=True)
class PoolTiles:
    """A field over `count` tiles for a pooling."""

    count: int

    def __str__(self) -> str:
        return f"pool {self.count}"


Tiles: TypeAlias = ConvTiles | JointTiles | PoolTiles
