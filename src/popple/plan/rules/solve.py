"""Cholesky decomposition and triangular systems, in blocks as in PopLibs poplin.

Sources: lib/poplin/Cholesky.cpp and lib/poplin/TriangularSolve.cpp. What the library
puts into functions that it calls several times is a loop here. Products of blocks are
planned like all matrix products, their operands copied to where the plan wants them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from popple.graph import Signature, TensorType
from popple.plan.blocks.broadcast import add_binary
from popple.plan.blocks.square import BlockLayout, BlockWork, add_block_work
from popple.plan.builder import SHUFFLED_PIECE_BYTES, PlanBuilder
from popple.plan.codelets.solve import (
    cholesky_cycles,
    inverse_cycles,
    solve_codelet,
    substitution_cycles,
    triangle_flops,
)
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.plan.rules.matmul import plan_matmul
from popple.program import TileVector
from popple.target import Chip
from popple.units import ceil_div

BLOCK_SIZE = 64
"""Rows of a block unless a program says otherwise (`poplin.blockSize`), as in PopLibs:
SolveOptions and CholeskyOptions."""


def plan_cholesky(request: PlanRequest) -> OpPlan:
    """Block by block: decompose it, solve for those beside it, correct the rest."""
    builder = PlanBuilder(request, "cholesky")
    tensor = request.signature.inputs[0]
    size = tensor.shape[-1]
    block = min(_block_size(request.signature), size)
    is_upper = request.signature.flag("is_upper")
    layout = BlockLayout(tensor, block, builder.chip, has_columns=is_upper)
    source = request.inputs[0] or layout.mapping
    builder.rearrange("copy", tensor, source, layout.mapping)
    for begin in range(0, size, block):
        _add_decomposition(builder, layout, min(block, size - begin))
        if (rest := size - begin - block) > 0:
            _add_correction(builder, layout, rest)
    _add_mask(builder, layout, is_upper)
    builder.note("blocks", ceil_div(size, block))
    return builder.finish([layout.mapping], (layout.mapping,))


def plan_triangular_solve(request: PlanRequest) -> OpPlan:
    """Halves of the matrix in turn down to one block, which is solved row by row."""
    builder = PlanBuilder(request, "triangular_solve")
    system = _System.of(request.signature, builder.chip)
    target = system.matrix.mapping
    _add_triangle(builder, request, target)
    held_from = builder.position - 1
    num_solves, products = system.count_parts()
    # Products of one size are one function of the library, called so often.
    for (size, width), count in sorted(products.items(), reverse=True):
        body = builder.part()
        _add_elimination(body, system, size, width)
        builder.repeat(f"products of {size}", count, body)
    body = builder.part()
    _add_substitution(body, system, is_function=num_solves > 1)
    builder.repeat("substitution", num_solves, body)
    builder.hold("triangle", target.bytes_by_tile, held_from)
    builder.note("blocks solved", num_solves)
    return builder.finish([system.unknowns.mapping], (target, None))


def _block_size(signature: Signature) -> int:
    wish = signature.notes.block_size
    return BLOCK_SIZE if wish is None else max(1, wish)


def _matrices(layout: BlockLayout, rows: int, columns: int) -> TensorType:
    """A part of every matrix of the stack."""
    return TensorType(layout.tensor.dtype, (layout.batch, rows, columns))


def _add_decomposition(builder: PlanBuilder, layout: BlockLayout, size: int) -> None:
    codelet = solve_codelet("Cholesky", layout.tensor.dtype)
    work = BlockWork(
        "decompose",
        codelet,
        cholesky_cycles(size),
        triangle_flops(size),
        taken=size * size,
        given=size * size,
        is_in_place=True,
    )
    add_block_work(builder, layout, work)


def _add_correction(builder: PlanBuilder, layout: BlockLayout, rest: int) -> None:
    """What is left of a decomposed block: its column solved, the rest corrected."""
    block = layout.block
    codelet = solve_codelet("TriangularInverse", layout.tensor.dtype)
    work = BlockWork(
        "invert",
        codelet,
        inverse_cycles(block),
        triangle_flops(block),
        taken=block * block,
        given=block * block,
    )
    add_block_work(builder, layout, work)
    column, square = layout.part(rest * block), layout.part(block * block)
    left = _matrices(layout, rest, block)
    _, product = _add_product(
        builder, "column", (left, _matrices(layout, block, block)), (column, square)
    )
    builder.rearrange("column/result", left, product, column, in_order=False)
    operands = left, _matrices(layout, block, rest)
    tensor, product = _add_product(builder, "rest", operands, (column, column))
    _add_difference(builder, "rest", tensor, product, layout.part(rest * rest))


def _add_mask(builder: PlanBuilder, layout: BlockLayout, is_upper: bool) -> None:
    """Zeros over the other triangle.

    The upper factor is stored by columns. Halves of a column share words with halves
    that stay, so that every row is merged in a step of its own.
    """
    zeros = layout.part(layout.tensor.shape[-1] * (layout.tensor.shape[-1] - 1) // 2)
    if not is_upper or layout.tensor.dtype.num_bytes >= builder.chip.atomic_store_bytes:
        _add_constants(builder, "mask", zeros.bytes_by_tile)
        return
    rows = layout.tensor.shape[-1] - 1
    body = builder.part()
    row = layout.part(ceil_div(rows, 2)).bytes_by_tile
    _add_constants(body, "mask", row)
    body.local_copy("mask/merge", row, layout.tensor.dtype, in_order=False)
    builder.repeat("mask", rows, body)


def _add_constants(builder: PlanBuilder, name: str, received: TileVector) -> None:
    """Constants that lie on the first tile, sent to all that need them."""
    source = TileVector.zeros(len(received)).plus_at(0, received.maximum)
    builder.move(f"{name}/constants", source, received)


def _add_triangle(
    builder: PlanBuilder, request: PlanRequest, target: TileMapping
) -> None:
    """The matrix without its other half; rows scaled to a diagonal of 1."""
    a, b = request.signature.inputs
    builder.rearrange("triangle", a, request.inputs[0] or target, target)
    _add_constants(builder, "triangle", target.bytes_by_tile)
    if not request.signature.flag("is_unit"):
        _add_scaling(builder, "scale a", a, target)
        _add_scaling(builder, "scale b", b, builder.input_mapping(1))


def _add_scaling(
    builder: PlanBuilder, name: str, tensor: TensorType, mapping: TileMapping
) -> None:
    """Every row divided by its element of the diagonal."""
    width = max(1, tensor.shape[-1])
    row_bytes = width * tensor.dtype.num_bytes
    needs = mapping.bytes_by_tile.map(
        lambda held: ceil_div(held, row_bytes) * tensor.dtype.num_bytes
    )
    builder.move(f"{name}/diagonal", needs, needs)
    add_binary(builder, "div", tensor, mapping, "VectorOuter")


@dataclass(frozen=True)
class _System:
    """Matrices padded to a number of blocks that halves, and their unknowns."""

    matrix: BlockLayout
    unknowns: BlockLayout
    size: int
    block: int
    width: int

    @classmethod
    def of(cls, signature: Signature, chip: Chip) -> _System:
        """The system an op solves."""
        a, b = signature.inputs
        limit, num_rows = _block_size(signature), a.shape[-1]
        size = limit
        # The matrix is halved down to blocks, so it is padded to a power of two of
        # them.
        while size < num_rows:
            size *= 2
        is_blocked = num_rows > limit
        block = limit if is_blocked else num_rows
        grid = block if is_blocked else 1
        return cls(
            BlockLayout(a, grid, chip),
            BlockLayout(b, grid, chip),
            size if is_blocked else num_rows,
            block,
            b.num_elements * num_rows // max(1, a.num_elements),
        )

    def count_parts(self) -> tuple[int, Counter[tuple[int, int]]]:
        """Blocks to solve, and products by rows of A and columns of X."""
        products: Counter[tuple[int, int]] = Counter()
        widths = Counter([self.width])
        size = self.size
        while size > self.block:
            size = ceil_div(size, 2)
            halves: Counter[int] = Counter()
            for width, count in widths.items():
                for part in (ceil_div(width, 2), width // 2):
                    if part:
                        products[size, part] += count
                        halves[part] += 2 * count
            widths = halves
        return widths.total(), products

    @property
    def solved_width(self) -> int:
        """Columns that one block is solved for."""
        width, size = self.width, self.size
        while size > self.block:
            width, size = ceil_div(width, 2), ceil_div(size, 2)
        return width


def _add_elimination(
    builder: PlanBuilder, system: _System, size: int, width: int
) -> None:
    """B of the lower half less A21 X1."""
    matrix, unknowns = system.matrix, system.unknowns
    operands = _matrices(matrix, size, size), _matrices(unknowns, size, width)
    sources = matrix.part(size * size), unknowns.part(size * width)
    tensor, product = _add_product(builder, "product", operands, sources)
    _add_difference(builder, "product", tensor, product, unknowns.part(size * width))


def _add_substitution(builder: PlanBuilder, system: _System, is_function: bool) -> None:
    """One block: by one worker for a single column, else a row after the other."""
    size, width = system.block, system.solved_width
    dtype = system.matrix.tensor.dtype
    if width == 1:
        work = BlockWork(
            "substitute",
            solve_codelet("TriangularSolve", dtype),
            substitution_cycles(size),
            size * size,
            taken=size * size + size,
            given=size,
        )
        add_block_work(builder, system.matrix, work)
        return
    if is_function:
        _add_arguments(builder, system, size * size, size * width)
    for row in range(1, size):
        _add_row(builder, system, row, width)


def _add_arguments(
    builder: PlanBuilder, system: _System, matrix: int, unknowns: int
) -> None:
    """A function works on copies: the block and its right-hand side go there."""
    moved = (
        system.matrix.part(matrix).bytes_by_tile
        + system.unknowns.part(2 * unknowns).bytes_by_tile
    )
    builder.move("arguments", moved, moved)
    builder.hold("arguments", moved, builder.position - 1)


def _add_row(builder: PlanBuilder, system: _System, row: int, width: int) -> None:
    """One more row of X: its B less the product with all rows before."""
    matrix, unknowns = system.matrix, system.unknowns
    operands = _matrices(matrix, 1, row), _matrices(unknowns, row, width)
    sources = matrix.part(row), unknowns.part(row * width)
    tensor, product = _add_product(builder, f"row {row}", operands, sources)
    target = unknowns.part(width)
    _add_difference(builder, f"row {row}", tensor, product, target)
    builder.move(f"row {row}/copy", target.bytes_by_tile, target.bytes_by_tile)


def _add_product(
    builder: PlanBuilder,
    name: str,
    operands: tuple[TensorType, TensorType],
    sources: Iterable[TileMapping],
) -> tuple[TensorType, TileMapping]:
    """A product of parts of matrices, copied to where its plan wants them."""
    free = _plan_product(builder, operands, (None, None))
    copies = zip(("left", "right"), operands, sources, free.inputs, strict=True)
    for side, tensor, source, wish in copies:
        target = wish or builder.linear(tensor)
        builder.rearrange(f"{name}/{side}", tensor, source, target, in_order=False)
        builder.hold(f"{name}/{side}", target.bytes_by_tile, builder.position - 1)
    plan = _plan_product(builder, operands, free.inputs)
    return _product_type(*operands), builder.embed(name, plan)


def _add_difference(
    builder: PlanBuilder,
    name: str,
    tensor: TensorType,
    product: TileMapping,
    target: TileMapping,
) -> None:
    """`target` less the product, which goes to where it lies."""
    first = builder.position
    builder.move(
        f"{name}/exchange",
        product.bytes_by_tile,
        target.bytes_by_tile,
        SHUFFLED_PIECE_BYTES,
    )
    add_binary(builder, "sub", tensor, target)
    builder.hold(f"{name}/product", target.bytes_by_tile, first)


def _plan_product(
    builder: PlanBuilder,
    operands: tuple[TensorType, TensorType],
    inputs: tuple[TileMapping | None, ...],
) -> OpPlan:
    signature = Signature("matmul", operands, (_product_type(*operands),))
    request = builder.request
    return plan_matmul(PlanRequest(signature, inputs, request.target, request.options))


def _product_type(left: TensorType, right: TensorType) -> TensorType:
    return TensorType(left.dtype, (*left.shape[:-1], right.shape[-1]))


RULES: dict[str, Rule] = {
    "cholesky": plan_cholesky,
    "triangular_solve": plan_triangular_solve,
}
