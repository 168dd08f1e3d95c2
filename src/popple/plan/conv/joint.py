"""Joint plans as steps: what differs for a layer whose passes share one split.

Every weight lies on the one tile that uses it in all passes: nothing of the weights is
exchanged, for the backward pass they are transposed where they lie, and their gradient
is made beside them. As in graphcore/poplibs (lib/poplin/Convolution.cpp,
fullyConnectedWeightTranspose). In: a Solution. Out: mappings and the supply of weights.
"""

from __future__ import annotations

import math

from popple.graph import TensorType
from popple.plan.builder import PlanBuilder
from popple.plan.conv.occupancy import Occupancy, add_multi
from popple.plan.conv.problem import Purpose
from popple.plan.conv.search import Solution
from popple.plan.conv.supply import Need, Supply
from popple.plan.conv.vertices import copy_cycles, transpose_cycles
from popple.plan.layout import Grouped, JointTiles, Layout, permuted
from popple.plan.opplan import TileMapping
from popple.units import ceil_div

_WORD_BYTES = 8


def is_joint(solution: Solution, purpose: Purpose) -> bool:
    """Whether this is the pass of that purpose in a joint plan."""
    setting = solution.setting
    return setting.is_joint and setting.form.problem.purpose is purpose


def joint_tiles(solution: Solution) -> JointTiles:
    """How the weights of a layer are split, the same seen from each of its passes."""
    split, purpose = solution.split, solution.setting.form.problem.purpose
    field, ins, outs = split.field.count, split.in_split, split.out_split
    inputs, outputs = {
        Purpose.LINEAR_INPUT_GRAD: (field, ins),
        Purpose.LINEAR_WEIGHT_GRAD: (outs, field),
    }.get(purpose, (ins, field))
    return JointTiles(split.groups_split, inputs, outputs)


def are_weights_home(solution: Solution, given: TileMapping | None) -> bool:
    """Whether the weights lie where all passes use them; unplaced ones will."""
    if given is None or not solution.setting.is_joint:
        return is_joint(solution, Purpose.LINEAR)
    return given.layout.joint_tiles == joint_tiles(solution)


def gradient_mapping(
    solution: Solution, occupancy: Occupancy, result: TensorType, inputs_axis: int
) -> TileMapping:
    """The gradient of the weights as these lie, whichever way round it is."""
    *groups, rows, columns = range(len(result.shape))
    turned = (*groups, columns, rows)
    is_turned = inputs_axis != rows
    shape = tuple(result.shape[d] for d in turned) if is_turned else result.shape
    group = math.gcd(solution.setting.method.out_group, result.shape[inputs_axis])
    layout = Layout(Grouped(shape, rows, group, joint_tiles(solution)))
    if is_turned:
        # Exchanging the last two dimensions undoes itself.
        layout = layout.viewed(permuted(shape, turned))
    vector = occupancy.spread(result.num_bytes, group * result.dtype.num_bytes)
    return TileMapping(vector, layout)


def turn_weights(
    builder: PlanBuilder, need: Need, solution: Solution, occupancy: Occupancy
) -> Supply:
    """Weights transposed block by block on the tiles that they lie on."""
    name, reads = f"transpose {need.name}", (need.position,)
    cycles = _turning_cycles(need, solution)
    add_multi(builder, name, "popops::Transpose", occupancy, cycles, reads)
    turned = occupancy.spread(need.type.num_bytes)
    supply = Supply(
        need.name,
        sent_by_tile=turned,
        received_bytes=0,
        held_bytes=need.held_bytes,
        piece_bytes=turned.maximum,
        is_shared=False,
        reads=(),
    )
    builder.begin(supply.rearranged, turned)
    return supply


def _turning_cycles(need: Need, solution: Solution) -> int:
    """Blocks of a group by a group, element by element if those fill no words."""
    setting = solution.setting
    group, size = setting.method.in_group, setting.element_bytes
    # The transposing vertex works in 64-bit words.
    if group * size % _WORD_BYTES:
        return copy_cycles(need.held_bytes, size)
    blocks = ceil_div(solution.split.inputs, group * group)
    return transpose_cycles(group, group, blocks, size, setting.chip.num_workers)
