"""Program: steps over tile-mapped variables, the form that the machine runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from popple.program.chips import ChipFinder
from popple.program.numbering import Numbering, number_steps
from popple.program.steps import Step
from popple.program.variables import Variable


@dataclass(frozen=True)
class Program:
    """The steps of one run of one replica, its functions and its variables.

    `tiles_per_chip` times `num_chips` is the length of every tile vector in it.
    `outlined` names ops that run the code of another op: steps of such an op have
    neither code nor vertices of their own. Without `has_vertex_code` nobody compiled
    code for its vertices, as for an IPU Model that need not have it.
    """

    # Chips of other replicas are left out: replicas run the same steps at the same
    # time, and what they send each other is in the flows of a GlobalExchange.
    name: str
    num_chips: int
    tiles_per_chip: int
    variables: Mapping[str, Variable]
    main: Step
    functions: Mapping[str, Step] = field(default_factory=dict[str, Step])
    outlined: Mapping[str, str] = field(default_factory=dict[str, str])
    has_vertex_code: bool = True

    @property
    def num_tiles(self) -> int:
        """Tiles of all chips of the replica."""
        return self.num_chips * self.tiles_per_chip

    @cached_property
    def steps(self) -> Numbering:
        """Every step of main and of all functions, in depth-first order."""
        return number_steps(self.main, self.functions)

    @cached_property
    def chip_finder(self) -> ChipFinder:
        """Tells which chips a step touches."""
        return ChipFinder(self.functions, self.tiles_per_chip)
