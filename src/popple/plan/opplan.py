"""OpPlan: the choice for one op, before it is placed on its chip.

Rules see one chip whose tiles are numbered from 0 and give plans in the same terms;
`lower` moves them to the op's chip and ties them to variables. A PlanRequest holds
everything a rule may look at and is hashable, so equal ops are planned once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from popple.graph import Signature
from popple.plan.layout import Layout
from popple.plan.options import PlanOptions
from popple.program import Category, TileVector, VertexGroup
from popple.target import Target


@dataclass(frozen=True)
class TileMapping:
    """Which bytes of a value lie on which tile of its chip.

    `layout` is the order of the elements: two values of one shape with equal mappings
    have equal elements on equal tiles, so nothing need move between them. Of a view of
    a part, `base_bytes` are those of the whole: a view of the view is derived from
    them, so that it does not matter in how many steps it was taken.
    """

    bytes_by_tile: TileVector
    layout: Layout
    base_bytes: TileVector | None = None


@dataclass(frozen=True)
class Share:
    """The tiles of a chip that one op has while others run beside it.

    `num_tiles` tiles from `first_tile` on, and the cycles, by cause, that its plan is
    not to exceed on them.
    """

    first_tile: int
    num_tiles: int
    reference: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlanRequest:
    """An op to plan: its signature, where its inputs lie, the machine, the wishes.

    An input mapping of None is a value nobody has laid out yet (a weight seen for the
    first time): the plan says in `OpPlan.inputs` how it would like it. An op that does
    not run alone has a `share` of the tiles.
    """

    signature: Signature
    inputs: tuple[TileMapping | None, ...]
    target: Target
    options: PlanOptions = field(default_factory=PlanOptions)
    share: Share | None = None

    @property
    def num_tiles(self) -> int:
        """Tiles of the op's chip."""
        return self.target.chip.num_tiles


@dataclass(frozen=True)
class Compute:
    """One compute phase of the plan.

    `reads` are the positions of the op's inputs that it reads, None for all of them:
    an input that no later step reads gives its memory back.
    """

    name: str
    vertices: tuple[VertexGroup, ...]
    reads: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Move:
    """One exchange phase of the plan; `reads` as those of a compute phase."""

    name: str
    sent_by_tile: TileVector
    received_by_tile: TileVector
    messages_by_tile: TileVector | None = None
    is_shared: bool = False
    reads: tuple[int, ...] | None = None


@dataclass(frozen=True)
class HostCopy:
    """A host stream; `to_host` tells the direction."""

    name: str
    bytes_by_tile: TileVector
    to_host: bool
    is_remote_buffer: bool = False


@dataclass(frozen=True)
class LinkCopy:
    """Traffic over links: from another chip of the replica, or between replicas.

    `source_chip` of -1 is the op's own chip (a collective among replicas).
    `num_bytes` is what each chip sends over its links in this step; `is_between_racks`
    says that the replicas are one of each rack.
    """

    name: str
    num_bytes: int
    bytes_by_tile: TileVector
    source_chip: int = -1
    replicas: int = 1
    is_between_racks: bool = False


@dataclass(frozen=True)
class Loop:
    """Steps run one after the other `count` times: a serial split."""

    count: int
    steps: tuple[PlanStep, ...]


# What a rule may use; `lowering` turns each into a step of the program.
PlanStep: TypeAlias = Compute | Move | HostCopy | LinkCopy | Loop


@dataclass(frozen=True)
class Temporary:
    """Memory used within the plan, from step `first` to step `last` of its list.

    Its place is as that of a `Variable`.
    """

    name: str
    bytes_by_tile: TileVector
    first: int
    last: int
    is_interleaved: bool = False
    category: Category = Category.VARIABLE
    operand: int = 0
    is_gathered: bool = False


@dataclass(frozen=True)
class OpPlan:
    """How one op runs on its chip and what it costs in memory.

    `outputs` maps every output; a view gives mappings and no steps. `inputs` are the
    mappings the rule would like for inputs nobody has laid out. `choice` explains the
    plan in words and numbers, `runners_up` names plans not taken with their estimated
    cycles. `is_memory_bound` says that a faster plan needed more temporary memory than
    it may take; `is_interleaved` that the outputs lie in interleaved memory. `rule` is
    the rule's name as reports show it.
    """

    rule: str
    outputs: tuple[TileMapping, ...]
    steps: tuple[PlanStep, ...] = ()
    inputs: tuple[TileMapping | None, ...] = ()
    temporaries: tuple[Temporary, ...] = ()
    flops: int = 0
    choice: tuple[tuple[str, str], ...] = ()
    runners_up: tuple[tuple[str, int], ...] = ()
    is_memory_bound: bool = False
    is_interleaved: bool = False


Rule: TypeAlias = Callable[[PlanRequest], OpPlan]
