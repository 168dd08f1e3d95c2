"""Ordering along a dimension by a sorting network, one exchange per pass.

As in PopLibs popops/BitonicTopK.cpp: halves are sorted as floats, keys and indices are
brought to the tiles that compare them before every pass.
"""

from __future__ import annotations

from itertools import groupby

from popple.graph import DType, Signature, TensorType
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.elementwise import cast_cycles
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.sort import compare_cycles, sort_passes
from popple.plan.mapping import mapping_like
from popple.plan.opplan import Compute, Loop, Move, OpPlan, PlanRequest, Rule
from popple.program import TileVector
from popple.units import ceil_div

PAIR_BYTES = 8
"""A key and its index, a word each."""


def plan_sort(request: PlanRequest) -> OpPlan:
    """Keys and indices pass through the network; partners meet by exchange."""
    builder = PlanBuilder(request, "sort")
    signature = request.signature
    keys, kept = signature.inputs[0], signature.outputs[0]
    row, count = _row_elements(signature, keys), _row_elements(signature, kept)
    num_rows = ceil_div(keys.num_elements, max(1, row))
    _add_cast(builder, "keys", keys)
    # All rows go through the network together: a pass is one exchange for all.
    sizes = [num_rows * size for size in sort_passes(row, count)]
    # Passes of equal size have equal steps, so they are one loop.
    for size, passes in groupby(sizes):
        _add_passes(builder, size, len(list(passes)))
    outputs = [builder.linear(result) for result in signature.outputs]
    builder.local_copy("result", outputs[0].bytes_by_tile, kept.dtype)
    _add_cast(builder, "result", kept)
    builder.note("passes", len(sizes))
    return builder.finish(outputs, (None,))


def _row_elements(signature: Signature, tensor: TensorType) -> int:
    dim = signature.integer("dim")
    return tensor.shape[dim] if tensor.shape else 1


def _add_passes(builder: PlanBuilder, num_elements: int, count: int) -> None:
    """So many passes of one size: partners are brought together and compared."""
    tiles = builder.request.num_tiles
    pairs = TileVector.spread(ceil_div(num_elements, 2), tiles, tiles)
    held = pairs.scaled(2 * PAIR_BYTES)
    builder.steps.append(
        Loop(count, (Move("partners", held, held), _compare(builder, pairs)))
    )
    builder.hold("keys and indices", held, builder.position - 1)


def _compare(builder: PlanBuilder, pairs: TileVector) -> Compute:
    dtype, workers = builder.request.signature.inputs[0].dtype, builder.num_workers
    group = vertices(
        multi_codelet("popops::CompareAndSwapAtDistanceKeyVal", dtype, 520, 28),
        pairs,
        lambda n: compare_cycles(n, dtype.is_float, workers),
        num_edges=4,
    )
    return Compute("compare", (group,))


def _add_cast(builder: PlanBuilder, name: str, tensor: TensorType) -> None:
    """Halves become floats, and results halves again."""
    dtype, workers = tensor.dtype, builder.num_workers
    if not dtype.is_float or dtype is DType.F32:
        return
    mapping = mapping_like(builder.input_mapping(0), tensor)
    builder.elementwise(
        f"{name}/cast",
        multi_codelet("popops::Cast1D<float", dtype, 250),
        mapping,
        tensor,
        lambda n: cast_cycles(dtype, DType.F32, n, workers),
        flops_per_element=0,
        num_edges=2,
    )


RULES: dict[str, Rule] = {"sort": plan_sort, "top_k": plan_sort}
