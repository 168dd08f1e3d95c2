"""Supply: how an operand gets from where it lies into the layout the vertices read.

In: what a tile needs of an operand, where the operand lies and where the plan would
like it. Out: steps of rearrangement, and a `Supply` that says what is left to exchange.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.graph import TensorType
from popple.plan.builder import PlanBuilder
from popple.plan.conv.occupancy import Occupancy, add_multi
from popple.plan.conv.regroup import Blocks, find_blocks
from popple.plan.conv.vertices import copy_cycles
from popple.plan.layout import Adjacency
from popple.plan.opplan import Move, TileMapping
from popple.program import TileVector
from popple.target import Chip
from popple.units import ceil_div

_WORD_BYTES = 8
# An operand that more tiles read is rearranged before it is sent to them
# (lib/poplin/Convolution.cpp, inViewMaxBroadcastDests).
MOST_READERS_OF_VIEW = 7


@dataclass(frozen=True)
class Need:
    """What the fullest tile needs of an operand in one of `num_parts` serial parts.

    `received_bytes` is what it does not hold already when the operand lies as wished;
    `copied_bytes` is the size of the operand in a form that a copy has to make;
    `turned_group` elements are adjacent once another dimension is the innermost;
    `position` is that of the operand among the inputs of the op.
    """

    name: str
    position: int
    type: TensorType
    adjacency: Adjacency
    turned_group: int
    copied_bytes: int
    held_bytes: int
    received_bytes: int
    num_parts: int
    is_shared: bool


@dataclass(frozen=True)
class Supply:
    """What is left to do once the operand is ready to be broadcast.

    `piece_bytes` come from one tile; `copied_after_bytes` are put in order on the
    receiving tile, `atom_bytes` at a time. `reads` is the input of the op that is left
    to read, none once it was rearranged. `is_in_place` says that the product reads
    the rearranged operand where it is, and next to it only what had to come.
    """

    name: str
    sent_by_tile: TileVector
    received_bytes: int
    held_bytes: int
    piece_bytes: int
    is_shared: bool
    reads: tuple[int, ...]
    copied_after_bytes: int = 0
    atom_bytes: int = _WORD_BYTES
    is_in_place: bool = False

    @property
    def rearranged(self) -> str:
        """Name of the operand's copy in the wished mapping, if one was made."""
        return f"rearranged {self.name}"

    @property
    def sliced(self) -> str:
        """Name of the operand's part for one turn of a serial loop."""
        return f"slice {self.name}"

    def add_copy(self, builder: PlanBuilder, occupancy: Occupancy) -> str:
        """The on-tile copy that puts received elements in order; names the result."""
        cycles = copy_cycles(self.copied_after_bytes, self.atom_bytes)
        add_multi(builder, f"order {self.name}", "poplar::Regroup", occupancy, cycles)
        builder.end(self.name)
        ordered = f"ordered {self.name}"
        builder.begin(ordered, occupancy.vector(self.held_bytes))
        return ordered


def supply_operand(
    builder: PlanBuilder,
    need: Need,
    given: TileMapping | None,
    wish: TileMapping,
    occupancy: Occupancy,
    chip: Chip,
) -> Supply:
    """Rearrange the operand as far as it pays before the exchange."""
    if need.copied_bytes:
        return _transformed(builder, need, given, wish, occupancy, chip)
    # A value nobody has laid out will lie as wished.
    given = given or wish
    atom = given.layout.copy_atom(need.adjacency)
    # Only the layouts are compared: with equal ones, every element is where the plan
    # has it but for what it shares with other tiles.
    if given.layout == wish.layout:
        supply = _make_supply(need, wish.bytes_by_tile, need.received_bytes)
        return _padded(builder, need, supply, atom, occupancy)
    if atom == 0:
        # In order, but on other tiles: the exchange brings all of it.
        return _make_supply(need, given.bytes_by_tile, need.held_bytes)
    # As in PopLibs, blocks are transposed wherever groups fill words; only other
    # operands are copied element by element.
    if blocks := _find_blocks(need, given, chip):
        return _regrouped(builder, need, given, wish, blocks, occupancy)
    atom_bytes = min(_WORD_BYTES, atom * need.type.dtype.num_bytes)
    if _pays_before(need, atom_bytes, occupancy, chip):
        return _rearranged(builder, need, given, wish, atom_bytes, occupancy)
    return _make_supply(
        need, given.bytes_by_tile, need.held_bytes, need.held_bytes, atom_bytes
    )


def _padded(
    builder: PlanBuilder, need: Need, supply: Supply, atom: int, occupancy: Occupancy
) -> Supply:
    """An operand on its tiles: channels that fill no whole groups are padded.

    What many tiles read is padded before it is sent to them. `atom` elements are
    neighbours before and after, 0 if they fill their groups.
    """
    if atom == 0:
        return supply
    atom_bytes = min(_WORD_BYTES, atom * need.type.dtype.num_bytes)
    # How often the operand is on the chip once it is broadcast.
    num_readers = need.held_bytes * occupancy.num_used // need.type.num_bytes
    if num_readers <= MOST_READERS_OF_VIEW:
        held = need.held_bytes
        return replace(supply, copied_after_bytes=held, atom_bytes=atom_bytes)
    own = occupancy.spread(need.type.num_bytes)
    cycles = copy_cycles(own.maximum, atom_bytes)
    name = f"pad {need.name}"
    add_multi(builder, name, "poplar::Regroup", occupancy, cycles, supply.reads)
    builder.begin(supply.rearranged, own)
    return replace(supply, reads=())


def _make_supply(
    need: Need,
    source: TileVector,
    received_bytes: int,
    copied_after_bytes: int = 0,
    atom_bytes: int = _WORD_BYTES,
) -> Supply:
    # A tile sends what it has of this turn; multicasts are counted at the receiver.
    sent = source.map(lambda num_bytes: ceil_div(num_bytes, need.num_parts))
    return Supply(
        need.name,
        sent,
        received_bytes,
        need.held_bytes,
        sent.maximum,
        need.is_shared,
        (need.position,),
        copied_after_bytes,
        atom_bytes,
    )


def _pays_before(need: Need, atom_bytes: int, occupancy: Occupancy, chip: Chip) -> bool:
    """Whether one copy of each element, before the broadcast, is the cheaper way."""
    each = ceil_div(need.type.num_bytes, occupancy.num_used)
    # Before: a share of each tile is copied and exchanged once more.
    before = copy_cycles(each, atom_bytes)
    before += ceil_div(each, chip.exchange_bytes_per_cycle)
    before += chip.exchange_latency_cycles + chip.mean_sync_delay_cycles
    # After: all that a tile received is copied, in every turn.
    after = copy_cycles(need.held_bytes, atom_bytes) * need.num_parts
    return before < after


def _rearranged(
    builder: PlanBuilder,
    need: Need,
    given: TileMapping,
    wish: TileMapping,
    atom_bytes: int,
    occupancy: Occupancy,
) -> Supply:
    """The whole operand brought into the wished mapping first."""
    result = wish.bytes_by_tile
    _add_copy(
        builder, need, given.bytes_by_tile, (result, result), atom_bytes, occupancy
    )
    supply = _make_supply(need, result, need.received_bytes)
    return replace(supply, reads=())


def _find_blocks(need: Need, given: TileMapping, chip: Chip) -> Blocks | None:
    """The blocks to transpose if another dimension has to become the innermost."""
    if given.layout.adjacency.stride == need.adjacency.stride:
        return None
    old_group = given.layout.group_in(need.type.shape)
    return find_blocks(need.type, old_group, need.turned_group, chip)


def _regrouped(
    builder: PlanBuilder,
    need: Need,
    given: TileMapping,
    wish: TileMapping,
    blocks: Blocks,
    occupancy: Occupancy,
) -> Supply:
    """The whole operand transposed block by block, on its way to the wished mapping."""
    _add_transposition(builder, need, given.bytes_by_tile, blocks)
    moved = wish.bytes_by_tile
    builder.add(Move(f"rearrange {need.name}", blocks.bytes_by_tile, moved, reads=()))
    builder.end(f"transposed {need.name}")
    builder.begin(f"rearranged {need.name}", moved)
    supply = replace(_make_supply(need, moved, need.received_bytes), reads=())
    # Groups that the transposition could not fill are padded behind it.
    is_whole = need.turned_group % need.adjacency.group == 0
    return _padded(
        builder, need, supply, 0 if is_whole else need.turned_group, occupancy
    )


def _add_transposition(
    builder: PlanBuilder, need: Need, source: TileVector, blocks: Blocks
) -> None:
    """Blocks gathered on all tiles and transposed there."""
    gathered, vector = f"gathered {need.name}", blocks.bytes_by_tile
    reads, everywhere = (need.position,), Occupancy.even(blocks.chip.num_tiles)
    builder.add(Move(f"gather {need.name}", source, vector, reads=reads))
    builder.begin(gathered, vector)
    name = f"transpose {need.name}"
    add_multi(builder, name, "popops::Transpose", everywhere, blocks.cycles)
    builder.end(gathered)
    builder.begin(f"transposed {need.name}", vector)


def _transformed(
    builder: PlanBuilder,
    need: Need,
    given: TileMapping | None,
    wish: TileMapping,
    occupancy: Occupancy,
    chip: Chip,
) -> Supply:
    """The operand copied into the form, spread over the tiles that use it.

    An element is sent once, however often the form repeats it.
    """
    source = (given or wish).bytes_by_tile
    blocks = _find_blocks(need, given, chip) if given else None
    if blocks:
        _add_transposition(builder, need, source, blocks)
        source = blocks.bytes_by_tile
    spread = occupancy.spread(need.copied_bytes)
    moved = occupancy.spread(min(need.type.num_bytes, need.copied_bytes))
    atom_bytes = min(_WORD_BYTES, need.adjacency.group * need.type.dtype.num_bytes)
    _add_copy(builder, need, source, (moved, spread), atom_bytes, occupancy)
    builder.end(f"transposed {need.name}")
    supply = _make_supply(need, spread, need.received_bytes)
    return replace(supply, reads=(), is_in_place=True)


def _add_copy(
    builder: PlanBuilder,
    need: Need,
    source: TileVector,
    received_and_result: tuple[TileVector, TileVector],
    atom_bytes: int,
    occupancy: Occupancy,
) -> None:
    """What tiles receive, put in order there."""
    received, result = received_and_result
    reads = (need.position,)
    builder.add(Move(f"rearrange {need.name}", source, received, reads=reads))
    builder.begin(f"message of {need.name}", received)
    cycles = copy_cycles(result.maximum, atom_bytes)
    add_multi(builder, f"order {need.name}", "poplar::Regroup", occupancy, cycles)
    builder.end(f"message of {need.name}")
    builder.begin(f"rearranged {need.name}", result)
