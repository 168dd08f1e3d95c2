"""Connectionist temporal classification, loss and gradient at once.

Source: PopLibs popnn/CTCLoss.cpp, which computes both even if only the loss is asked
for. Every tile has the chances of its points in time and adds to gradients of its own;
those of all partitions of labels are summed at the end.
"""

from __future__ import annotations

from popple.graph import DType, TensorType
from popple.plan.blocks.broadcast import add_binary, add_unary
from popple.plan.blocks.ctc import PARTIAL_BYTES, CtcProblem, CtcSplit, find_split
from popple.plan.blocks.reduction import Reduction, add_reduction, reduced_type
from popple.plan.builder import PlanBuilder
from popple.plan.codelets.ctc import (
    LOG_ADD_PAIR_CYCLES,
    alpha_cycles,
    ctc_codelet,
    gradient_cycles,
)
from popple.plan.layout import Layout, Named
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import TileVector, VertexGroup
from popple.units import ceil_div

_FLOPS_PER_SYMBOL = 10
"""Of alpha or beta: two sums of logarithms of 4 operations, two products."""


def plan_ctc_loss(request: PlanRequest) -> OpPlan:
    """Alpha and beta from both ends of time, then on with gradients, then sums."""
    builder = PlanBuilder(request, "ctc_loss")
    chances, targets = request.signature.inputs[:2]
    split = _find_split(request)
    mapping = _data_mapping(builder, split, chances)
    if (given := request.inputs[0]) is not None:
        builder.rearrange("chances", chances, given, mapping)
    _add_beginning(builder, split, targets)
    _add_loop(builder, split, "alpha and beta", ("CTCAlpha", "CTCBeta"), False)
    _add_meeting(builder, split)
    kinds = ("CTCGradGivenAlpha", "CTCGradGivenBeta")
    _add_loop(builder, split, "gradients", kinds, True)
    _hold_tables(builder, split, chances.dtype)
    gradient = _add_sums(builder, split, chances, mapping)
    for key in ("batch", "time", "labels"):
        builder.note(f"{key} split", getattr(split, key))
    losses = request.signature.outputs[0]
    others = (None,) * (len(request.inputs) - 1)
    return builder.finish([builder.linear(losses), gradient], (mapping, *others))


def _find_split(request: PlanRequest) -> CtcSplit:
    chances, targets = request.signature.inputs[:2]
    time, batch, num_classes = chances.shape
    (num_labels,) = request.signature.ints("num_labels") or targets.shape[-1:]
    problem = CtcProblem(time, batch, num_classes, num_labels, chances.dtype.num_bytes)
    options = request.options
    return find_split(problem, request.target.chip, options.memory_proportion)


def _data_mapping(
    builder: PlanBuilder, split: CtcSplit, chances: TensorType
) -> TileMapping:
    """Points in time dealt over all tiles of a part of the batch, classes together."""
    row_bytes = split.rows * chances.shape[-1] * chances.dtype.num_bytes
    # A point in time is not cut: more tiles than points would have nothing.
    used = min(split.num_tiles, split.batch * split.problem.time)
    vector = TileVector.spread(
        chances.num_bytes, used, builder.request.num_tiles, row_bytes
    )
    sizes = split.batch, used // split.batch
    return TileMapping(vector, Layout(Named("ctc", sizes)))


def _per_tile(builder: PlanBuilder, split: CtcSplit, value: int) -> TileVector:
    """`value` on every tile at work."""
    idle = builder.request.num_tiles - split.num_tiles
    return TileVector.of([(split.num_tiles, value), (idle, 0)])


def _add_beginning(builder: PlanBuilder, split: CtcSplit, targets: TensorType) -> None:
    """Chances and targets to all tiles that read them; impossible everywhere else."""
    chances = builder.request.signature.inputs[0]
    data = split.table_elements * chances.dtype.num_bytes
    if split.label_tiles > 1:
        received = _per_tile(builder, split, data)
        row = split.problem.num_classes * chances.dtype.num_bytes
        builder.move("broadcast chances", received, received, row)
    labels = split.rows * (split.symbols + 2) * targets.dtype.num_bytes
    small = _per_tile(builder, split, labels)
    builder.move("broadcast targets", small, small)
    gradients = split.table_elements * PARTIAL_BYTES
    filled = _per_tile(builder, split, gradients + _column_bytes(split))
    # The constant lies on the first tile and is multicast to the others.
    source = TileVector.zeros(len(filled)).plus_at(0, filled.maximum)
    builder.move("initialise", source, filled)


def _column_bytes(split: CtcSplit) -> int:
    """Columns of alpha or beta that go from tile to tile, and what they come from."""
    return 5 * split.rows * split.extended * PARTIAL_BYTES


def _add_loop(
    builder: PlanBuilder,
    split: CtcSplit,
    name: str,
    kinds: tuple[str, str],
    with_gradient: bool,
) -> None:
    """One step in time on all tiles, as often as it takes to cross half of it."""
    body = builder.part()
    columns = (2 if with_gradient else 1) * 2 * split.column_elements
    moved = split.rows * (columns + split.neighbour_elements) * PARTIAL_BYTES
    exchanged = _per_tile(builder, split, moved)
    if not exchanged.is_zero:
        pieces = PARTIAL_BYTES * max(2, split.column_elements)
        body.move(f"{name}/neighbours", exchanged, exchanged, pieces)
    body.compute(name, *_step_vertices(builder, split, kinds, with_gradient))
    builder.repeat(name, split.num_loops, body)


def _step_vertices(
    builder: PlanBuilder,
    split: CtcSplit,
    kinds: tuple[str, str],
    with_gradient: bool,
) -> tuple[VertexGroup, ...]:
    """Earlier times run one kind of vertex, later times the other."""
    dtype = builder.request.signature.inputs[0].dtype
    cycles = (gradient_cycles if with_gradient else alpha_cycles)(
        split.symbols, split.has_last_blank
    )
    flops = split.symbols * _FLOPS_PER_SYMBOL * (1 + with_gradient)
    early = ceil_div(split.time, 2) * split.label_tiles
    late = split.time * split.label_tiles - early
    idle = builder.request.num_tiles - split.num_tiles
    groups: list[VertexGroup] = []
    for index, kind in enumerate(kinds):
        counts = (1 - index, index)
        runs = [(early, counts[0]), (late, counts[1])] * split.batch
        ones = TileVector.of([*runs, (idle, 0)])
        if not ones.is_zero:
            groups.append(
                VertexGroup(
                    ctc_codelet(kind, dtype),
                    ones.scaled(split.rows),
                    ones.scaled(cycles),
                    ones.scaled(flops),
                    num_edges=12,
                )
            )
    return tuple(groups)


def _add_meeting(builder: PlanBuilder, split: CtcSplit) -> None:
    """Where the directions meet, each hands its last column to the other."""
    if split.time == 1:
        return
    columns = 2 * split.rows * split.extended * PARTIAL_BYTES
    handed = _per_tile(builder, split, columns)
    builder.move("meeting", handed, handed)


def _hold_tables(builder: PlanBuilder, split: CtcSplit, dtype: DType) -> None:
    """Memory of both loops; gradients last until they are summed."""
    last = builder.position - 1
    data = split.table_elements * dtype.num_bytes * (split.label_tiles > 1)
    table = split.rows * split.steps * split.extended * PARTIAL_BYTES
    working = _per_tile(builder, split, data + table + _column_bytes(split))
    builder.hold("chances and alpha", working, 0, last)
    gradients = _per_tile(builder, split, split.table_elements * PARTIAL_BYTES)
    builder.hold("gradients", gradients, 1, last)


def _add_sums(
    builder: PlanBuilder, split: CtcSplit, chances: TensorType, mapping: TileMapping
) -> TileMapping:
    """Losses and gradients of all partitions of labels, then less the chances."""
    rows = TensorType(DType.F32, (split.problem.batch, split.time * split.label_tiles))
    _add_log_sum(builder, split, "losses", rows, (True, False))
    if split.label_tiles > 1:
        parts = TensorType(DType.F32, (split.label_tiles, chances.num_elements))
        mapping = _add_log_sum(builder, split, "gradients", parts, (False, True))
    for _ in range(2):
        add_unary(builder, "exp", chances, mapping)
    add_binary(builder, "sub", chances, mapping)
    return mapping


def _add_log_sum(
    builder: PlanBuilder,
    split: CtcSplit,
    name: str,
    parts: TensorType,
    kept: tuple[bool, ...],
) -> TileMapping:
    """A sum of logarithms over what every tile at work has of it."""
    vector = TileVector.spread(
        parts.num_bytes, split.num_tiles, builder.request.num_tiles, PARTIAL_BYTES
    )
    reduction = Reduction("LOG_SUM", parts, kept, LOG_ADD_PAIR_CYCLES)
    source = TileMapping(vector, Layout(Named(f"ctc {name}")))
    result = reduced_type(reduction, DType.F32)
    return add_reduction(builder, f"sum {name}", reduction, source, result)


RULES: dict[str, Rule] = {"ctc_loss": plan_ctc_loss}
