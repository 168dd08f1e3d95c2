"""Views cost nothing; rearrangements are an exchange and an on-tile copy."""

from __future__ import annotations

from popple.plan.blocks.operands import Operand, bring_operands
from popple.plan.builder import PlanBuilder
from popple.plan.codelets.elementwise import TERNARY, binary_cycles
from popple.plan.codelets.rates import Rates, multi_codelet, rates
from popple.plan.mapping import mapping_like, view_mapping
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category, add_all

RESIZE = rates((8, 2), (8, 4))
"""Assumed: two multiply-adds per word and field dimension, twice."""


def plan_view(request: PlanRequest) -> OpPlan:
    """The same memory under another name."""
    signature, source = request.signature, request.inputs[0]
    if source is None:
        source = PlanBuilder(request, "shape").linear(signature.inputs[0])
    mapping = view_mapping(signature, source)
    return OpPlan("shape", (mapping,), inputs=(None,), choice=(("view", "free"),))


def plan_rearrange(request: PlanRequest) -> OpPlan:
    """A new tensor in flat order: copy, concat, pad, tile, flip, roll."""
    builder = PlanBuilder(request, "shape")
    _bring_all(builder, builder.linear(request.signature.outputs[0]))
    target = builder.linear(request.signature.outputs[0])
    return builder.finish([target], (None,) * len(request.inputs))


def plan_resize(request: PlanRequest) -> OpPlan:
    """The field is exchanged, then interpolated."""
    builder = PlanBuilder(request, "shape")
    target = builder.linear(request.signature.outputs[0])
    _bring_all(builder, target)
    _add_pass(builder, "resize", RESIZE, target, 4)
    return builder.finish([target], (None,) * len(request.inputs))


def plan_triangle(request: PlanRequest) -> OpPlan:
    """A selection where the elements lie."""
    builder = PlanBuilder(request, "shape")
    result = request.signature.outputs[0]
    target = mapping_like(builder.input_mapping(0), result)
    _add_pass(builder, "triangle", TERNARY["select"], target, 0)
    return builder.finish([target], (None,))


def plan_update_slice(request: PlanRequest) -> OpPlan:
    """The part is brought to the whole, which is copied where it lies."""
    builder = PlanBuilder(request, "shape")
    whole, part = request.signature.inputs
    result = request.signature.outputs[0]
    target = mapping_like(builder.input_mapping(0), result)
    place = mapping_like(target, part)
    operand = Operand(part, builder.input_mapping(1))
    bring_operands(builder, [operand], place, part, "part")
    builder.local_copy("update", target.bytes_by_tile, whole.dtype)
    return builder.finish([target], (None, None))


def _bring_all(builder: PlanBuilder, target: TileMapping) -> None:
    """Exchange every input that does not already lie as the result does, and copy.

    Poplar would take elements of inputs in flat order in long pieces; any other order
    is put right one element at a time.
    """
    signature, tiles = builder.request.signature, builder.request.num_tiles
    result = signature.outputs[0]
    sources = [builder.input_mapping(i) for i in range(len(signature.inputs))]
    in_order = all(source.layout.is_linear for source in sources)
    # These two change which elements are neighbours even if all inputs are flat.
    in_order = in_order and signature.kind not in ("flip", "tile")
    if sources != [target]:
        sent = add_all((source.bytes_by_tile for source in sources), tiles)
        first = builder.move("exchange", sent, target.bytes_by_tile)
        builder.hold(
            "message", target.bytes_by_tile, first, first + 1, Category.MESSAGE
        )
    builder.local_copy("copy", target.bytes_by_tile, result.dtype, in_order)
    builder.note("order", "flat" if in_order else "rearranged")


def _add_pass(
    builder: PlanBuilder, name: str, table: Rates, target: TileMapping, flops: int
) -> None:
    result = builder.request.signature.outputs[0]
    rate, workers = table.of(result.dtype), builder.num_workers
    builder.elementwise(
        name,
        multi_codelet(f"popops::{name.title()}", result.dtype, 400, 20),
        target,
        result,
        lambda n: binary_cycles(rate, result.dtype, n, workers),
        flops,
    )


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("reshape", "permute", "slice", "broadcast", "diagonal"), plan_view
    ),
    **dict.fromkeys(("copy", "concat", "pad", "tile", "flip", "roll"), plan_rearrange),
    "resize": plan_resize,
    "triangle": plan_triangle,
    "update_slice": plan_update_slice,
}
