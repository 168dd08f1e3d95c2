"""Operands of element-wise work: where the result goes and what must move to it.

The result takes the mapping of the input with the smallest largest tile (PopLibs
popops/ElementWiseUtil.cpp). Operands of its size that lie elsewhere are exchanged;
smaller ones are multicast to the tiles that need them. The exchange also puts elements
in order, if those that stay neighbours are long enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from popple.graph import TensorType
from popple.plan.blocks.spans import num_distinct, operand_kept
from popple.plan.builder import ORDERED_PIECE_BYTES, PlanBuilder
from popple.plan.mapping import (
    elements_by_tile,
    has_aliases,
    is_colocated,
    mapping_like,
)
from popple.plan.opplan import TileMapping
from popple.program import Category, TileVector, add_all

_LEAST_RUN_BYTES = 8
"""Neighbours that an exchange puts in order by itself: words, more than one. In the
profiles of BERT-Large and EfficientNet (graphcore/popliner) sums of tensors that lie
apart are one compute set after an exchange, with no copy. Less is assumed to need one.
"""


@dataclass(frozen=True)
class Operand:
    """An input with its mapping, or None for one nobody has laid out."""

    type: TensorType
    mapping: TileMapping | None

    def is_full(self, result: TensorType) -> bool:
        """Whether it has one element of its own for each element of the result."""
        if self.type.num_elements != result.num_elements:
            return False
        return self.mapping is None or not has_aliases(self.mapping, self.type)


def request_operands(builder: PlanBuilder) -> tuple[Operand, ...]:
    """All inputs of the op."""
    request = builder.request
    pairs = zip(request.signature.inputs, request.inputs, strict=True)
    return tuple(Operand(tensor, mapping) for tensor, mapping in pairs)


def choose_result_mapping(
    builder: PlanBuilder, operands: Iterable[Operand], result: TensorType
) -> TileMapping:
    """The mapping of the full operand with the smallest largest tile, else linear.

    Ties go to the one on more tiles, then to the first.
    """
    best: TileMapping | None = None
    best_rank = (0, 0)
    for operand in operands:
        if operand.mapping is None or not operand.is_full(result):
            continue
        sizes = elements_by_tile(operand.mapping, operand.type)
        # The fullest tile sets the time of the pass; more tiles break a tie.
        rank = (sizes.maximum, -sizes.num_nonzero)
        if best is None or rank < best_rank:
            best, best_rank = mapping_like(operand.mapping, result), rank
    return best or builder.linear(result)


def bring_operands(
    builder: PlanBuilder,
    operands: Iterable[Operand],
    target: TileMapping,
    result: TensorType,
    name: str = "operands",
    is_regrouped: bool = False,
) -> tuple[TileMapping | None, ...]:
    """Add the exchange that brings every operand to the result's tiles.

    Operands to be regrouped, gradients of weights as PopLibs brings them to weights,
    are put in order on the tiles.
    Gives the wish for each operand nobody has laid out: the result's own mapping for
    a full one, none for a smaller one.
    """
    wishes: list[TileMapping | None] = []
    moves: list[tuple[TileVector, TileVector]] = []
    shuffled: list[TileVector] = []
    piece_bytes = ORDERED_PIECE_BYTES
    for operand in operands:
        is_unplaced = operand.mapping is None and operand.is_full(result)
        wishes.append(mapping_like(target, operand.type) if is_unplaced else None)
        if is_unplaced:
            continue
        # All operands that have to move share one exchange phase.
        if move := _find_move(builder, operand, target, result):
            moves.append(move)
            run_bytes = _run_bytes(operand, target, result)
            least = ORDERED_PIECE_BYTES if is_regrouped else _LEAST_RUN_BYTES
            if run_bytes < least:
                shuffled.append(move[1])
            else:
                # One exchange has one size of messages: the shortest run decides.
                piece_bytes = min(piece_bytes, run_bytes)
    if moves:
        first = builder.move_all(f"{name}/exchange", moves, piece_bytes)
        if shuffled:
            total = add_all(shuffled, builder.request.num_tiles)
            builder.local_copy(f"{name}/order", total, result.dtype, in_order=False)
        received = add_all((r for _, r in moves), builder.request.num_tiles)
        # The message is read by the compute phase that follows.
        builder.hold(
            f"{name}/message", received, first, builder.position, Category.MESSAGE
        )
    return tuple(wishes)


def multicast_needs(
    operand: TensorType, target: TileMapping, result: TensorType
) -> TileVector:
    """Bytes of a small operand that each tile of the result needs."""
    kept = operand_kept(operand.shape, result.shape)
    size = operand.dtype.num_bytes
    spans = elements_by_tile(target, result)
    most = max(1, operand.num_elements)
    return spans.map(lambda n: size * min(most, num_distinct(result.shape, kept, n)))


def _find_move(
    builder: PlanBuilder, operand: Operand, target: TileMapping, result: TensorType
) -> tuple[TileVector, TileVector] | None:
    source = operand.mapping or builder.linear(operand.type)
    if operand.is_full(result):
        if is_colocated(source, operand.type, target, result):
            return None
        received = mapping_like(target, operand.type).bytes_by_tile
        return source.bytes_by_tile, received
    # More dimensions than the result: it is no broadcast, all of it is sent.
    if len(operand.type.shape) > len(result.shape):
        return source.bytes_by_tile, mapping_like(target, operand.type).bytes_by_tile
    needs = multicast_needs(operand.type, target, result)
    if has_aliases(source, operand.type):
        # A broadcast view: no tile needs more than the memory behind it.
        limit = source.bytes_by_tile.total
        needs = needs.map(lambda num_bytes: min(num_bytes, limit))
    if is_colocated(source, operand.type, target, result):
        return None
    return source.bytes_by_tile, needs


def _run_bytes(operand: Operand, target: TileMapping, result: TensorType) -> int:
    """Bytes of elements that are neighbours both where they lie and where they go."""
    if operand.mapping is None or not operand.is_full(result):
        return ORDERED_PIECE_BYTES
    if operand.mapping.layout.is_ordered_as(target.layout):
        return ORDERED_PIECE_BYTES
    run = operand.mapping.layout.run_shared_with(target.layout)
    return run * operand.type.dtype.num_bytes
