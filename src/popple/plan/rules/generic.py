"""The generic rule, for framework ops the table has no entry for.

Every input not laid out like the first output is exchanged, every input is read once
and every output written once at the memcpy rate, and each output element costs
`ELEMENT_CYCLES` worker cycles. A report names every op modelled this way.
"""

from __future__ import annotations

from popple.graph import DType, TensorType
from popple.plan.blocks.operands import choose_result_mapping, request_operands
from popple.plan.builder import PlanBuilder
from popple.plan.codelets.rates import Rate, multi_codelet
from popple.plan.codelets.shape import copy_cycles
from popple.plan.layout import Layout, Named
from popple.plan.mapping import elements_by_tile, is_colocated, rescaled
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category, TileVector, VertexGroup, add_all, combine

ELEMENT_CYCLES = 10
"""Worker cycles per output element: about five instructions and their loads."""


def plan_generic(request: PlanRequest) -> OpPlan:
    """Exchange what lies elsewhere, then one pass over all bytes."""
    builder = PlanBuilder(request, "generic")
    signature = request.signature
    # An op without results still reads: it is timed by its first input.
    results = signature.outputs or signature.inputs[:1]
    outputs = _map_outputs(builder)
    target = outputs[0] if outputs else _first_input(builder)
    _bring_inputs(builder, target, results)
    _add_pass(builder, target, outputs, results)
    name = signature.attr("framework_op", signature.kind)
    builder.note("framework op", name)
    return builder.finish(outputs, (None,) * len(request.inputs))


def _map_outputs(builder: PlanBuilder) -> list[TileMapping]:
    """Like an input of the same number of elements, else linear."""
    operands = request_operands(builder)
    return [
        choose_result_mapping(builder, operands, result)
        for result in builder.request.signature.outputs
    ]


def _first_input(builder: PlanBuilder) -> TileMapping:
    if builder.request.inputs:
        return builder.input_mapping(0)
    nothing = TileVector.zeros(builder.request.num_tiles)
    return TileMapping(nothing, Layout(Named("empty")))


def _bring_inputs(
    builder: PlanBuilder, target: TileMapping, results: tuple[TensorType, ...]
) -> None:
    moves: list[tuple[TileVector, TileVector]] = []
    for index, tensor in enumerate(builder.request.signature.inputs):
        source = builder.input_mapping(index)
        if results and is_colocated(source, tensor, target, results[0]):
            continue
        size = tensor.dtype.num_bytes
        moves.append(
            (
                source.bytes_by_tile,
                rescaled(target.bytes_by_tile, tensor.num_bytes, size),
            )
        )
    if moves:
        first = builder.move_all("operands/exchange", moves)
        received = add_all((r for _, r in moves), builder.request.num_tiles)
        message = Category.MESSAGE
        builder.hold("operands/message", received, first, first + 1, message)


def _add_pass(
    builder: PlanBuilder,
    target: TileMapping,
    outputs: list[TileMapping],
    results: tuple[TensorType, ...],
) -> None:
    signature, tiles = builder.request.signature, builder.request.num_tiles
    read = sum(tensor.num_bytes for tensor in signature.inputs)
    traffic = add_all(
        [rescaled(target.bytes_by_tile, read, 1), *(m.bytes_by_tile for m in outputs)],
        tiles,
    )
    elements = add_all(
        (elements_by_tile(m, t) for m, t in zip(outputs, results, strict=False)), tiles
    )
    dtype = results[0].dtype if results else DType.F32
    builder.compute("generic", _make_vertices(builder, dtype, traffic, elements))


def _make_vertices(
    builder: PlanBuilder, dtype: DType, traffic: TileVector, elements: TileVector
) -> VertexGroup:
    rate, workers = builder.chip.memcpy_bytes_per_cycle, builder.num_workers
    element_rate = Rate(ELEMENT_CYCLES, 1)

    def cycles(num_bytes: int, num_elements: int) -> int:
        work = workers * element_rate.worker_cycles(num_elements, workers)
        return copy_cycles(num_bytes, rate) + work

    return VertexGroup(
        multi_codelet("popops::Generic", dtype, 600, 24),
        traffic.map(lambda num_bytes: int(num_bytes > 0)),
        combine(lambda pair: cycles(pair[0], pair[1]), [traffic, elements]),
        elements if dtype.is_float else None,
        num_edges=2,
    )


RULES: dict[str, Rule] = {"generic": plan_generic}
