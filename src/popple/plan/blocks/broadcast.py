"""Passes over a large tensor, alone or with one statistic per row or column.

Softmax and norms subtract and multiply by statistics: the statistics are multicast to
the tiles that hold the rows, then one element-wise pass runs in place.
"""

from __future__ import annotations

from popple.graph import DType, TensorType
from popple.plan.blocks.spans import num_distinct
from popple.plan.builder import ORDERED_PIECE_BYTES, PlanBuilder
from popple.plan.codelets.elementwise import (
    BINARY,
    binary_cycles,
    unary_cycles,
    vector_outer_cycles,
)
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.sizes import (
    BINARY_CODE_BYTES,
    BINARY_STATE_BYTES,
    IN_PLACE_STATE_BYTES,
    UNARY_CODE_BYTES,
    UNARY_STATE_BYTES,
    VECTOR_INNER_CODE_BYTES,
    VECTOR_OUTER_CODE_BYTES,
    VECTOR_STATE_BYTES,
)
from popple.plan.mapping import elements_by_tile
from popple.plan.opplan import TileMapping
from popple.program import Category, Codelet, TileVector
from popple.units import ceil_div

_VECTOR_INNER = "BroadcastVectorInner"


def add_unary(
    builder: PlanBuilder, kind: str, tensor: TensorType, mapping: TileMapping
) -> None:
    """Add a unary pass in place."""
    workers, dtype = builder.num_workers, tensor.dtype
    codelet = _in_place("UnaryOp1D", kind, dtype, UNARY_CODE_BYTES, UNARY_STATE_BYTES)
    builder.elementwise(
        kind,
        codelet,
        mapping,
        tensor,
        lambda n: unary_cycles(kind, dtype, n, workers, is_in_place=True),
        num_edges=2,
    )


def add_binary(
    builder: PlanBuilder,
    kind: str,
    tensor: TensorType,
    mapping: TileMapping,
    codelet_name: str = "BinaryOp1D",
) -> None:
    """Add a binary pass in place, of operands that lie together or with a small one."""
    workers, dtype = builder.num_workers, tensor.dtype
    rate = BINARY[kind].of(dtype)
    is_vector = codelet_name == _VECTOR_INNER
    size = VECTOR_INNER_CODE_BYTES if is_vector else BINARY_CODE_BYTES
    state = VECTOR_STATE_BYTES if is_vector else BINARY_STATE_BYTES
    codelet = _in_place(codelet_name, kind, dtype, size, state)
    builder.elementwise(
        kind,
        codelet,
        mapping,
        tensor,
        lambda n: binary_cycles(rate, dtype, n, workers, is_in_place=True),
    )


def add_statistics_pass(
    builder: PlanBuilder,
    kind: str,
    tensor: TensorType,
    mapping: TileMapping,
    kept: tuple[bool, ...],
    needs: TileVector | None,
) -> None:
    """Add a binary pass with one statistic for each index of the kept dimensions.

    `needs` are the bytes of statistics just received, if they had to move.
    """
    # Statistics along the innermost dimension are a vector beside each row.
    if kept[-1:] == (True,):
        add_binary(builder, kind, tensor, mapping, _VECTOR_INNER)
    else:
        _add_rows(builder, kind, tensor, mapping, kept)
    if needs is not None:
        last = builder.position - 1
        builder.hold(f"{kind}/statistics", needs, last - 1, last, Category.MESSAGE)


def _add_rows(
    builder: PlanBuilder,
    kind: str,
    tensor: TensorType,
    mapping: TileMapping,
    kept: tuple[bool, ...],
) -> None:
    workers, dtype = builder.num_workers, tensor.dtype
    size, state = VECTOR_OUTER_CODE_BYTES, VECTOR_STATE_BYTES
    codelet = _in_place("BroadcastVectorOuter", kind, dtype, size, state)

    def cycles(num_elements: int) -> int:
        rows = num_distinct(tensor.shape, kept, num_elements)
        columns = ceil_div(num_elements, rows)
        return vector_outer_cycles(rows, columns, dtype, workers)

    builder.elementwise(kind, codelet, mapping, tensor, cycles)


def _in_place(
    name: str, kind: str, dtype: DType, code_bytes: int, state_bytes: int
) -> Codelet:
    """The codelet that writes to where it reads: another one, with less state."""
    # It has no pointer to a result.
    state_bytes -= IN_PLACE_STATE_BYTES
    return multi_codelet(
        f"popops::{name}InPlace<{kind}", dtype, code_bytes, state_bytes
    )


def add_multicast(
    builder: PlanBuilder,
    name: str,
    tensor: TensorType,
    mapping: TileMapping,
    kept: tuple[bool, ...],
    source: TileMapping,
    dtype: DType,
) -> TileVector | None:
    """Send statistics, one per kept index, to the tiles that hold their elements.

    Statistics reduced where their row lies need not move: None is returned.
    """
    if source.layout.is_reduction_of(mapping.layout):
        return None
    size = dtype.num_bytes
    spans = elements_by_tile(mapping, tensor)
    needs = spans.map(lambda n: size * num_distinct(tensor.shape, kept, n))
    # Neighbours that lie on one tile come in one message.
    held = source.bytes_by_tile
    run = min(ceil_div(held.total, max(1, held.num_nonzero)), ORDERED_PIECE_BYTES)
    builder.move(f"{name}/multicast", held, needs, max(4 * size, run))
    return needs
