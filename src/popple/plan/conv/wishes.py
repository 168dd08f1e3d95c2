"""Wishes: how a chosen split wants its operands laid out, and lays out its result.

In: a Solution, and which operand of the op plays which role in it. Out: tile mappings,
and which elements must be adjacent for the vertices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from popple.graph import TensorType
from popple.plan.conv.joint import gradient_mapping, is_joint, joint_tiles
from popple.plan.conv.occupancy import Occupancy
from popple.plan.conv.problem import ConvProblem, Purpose
from popple.plan.conv.search import Solution
from popple.plan.layout import (
    Adjacency,
    ConvTiles,
    Grouped,
    Layout,
    Tiles,
    adjacency_of_axis,
)
from popple.plan.mapping import num_linear_tiles
from popple.plan.opplan import TileMapping
from popple.program import TileVector
from popple.units import ceil_div

# Bytes of an operand that a tile has at least, of those that all its readers read.
_MIN_INPUT_BYTES = 128
_MIN_WEIGHT_BYTES = 256

# Position of the weights among the inputs of a linear layer's products.
_WEIGHTS_OF_PRODUCT = 1


@dataclass(frozen=True)
class Operand:
    """An input of the op: its position, type and the dimension summed over."""

    index: int
    type: TensorType
    axis: int


@dataclass(frozen=True)
class Roles:
    """Which input is the field, which the kernel, and how the result is blocked.

    `out_axis` of the result are the output channels, `rows_axis` what takes their
    place when operands are swapped.
    """

    field: Operand
    weights: Operand
    result: TensorType
    out_axis: int
    rows_axis: int


@dataclass(frozen=True)
class Wishes:
    """The mappings of one plan: `roles` are those of the form that was searched."""

    problem: ConvProblem
    roles: Roles
    solution: Solution
    occupancy: Occupancy

    def output_mapping(self) -> TileMapping:
        """Where the result lies: over the tiles that summed it up."""
        result, method = self.roles.result, self.solution.setting.method
        axis, group = self.roles.out_axis, method.out_group
        group = min(group, result.shape[axis])
        # Every tile keeps whole groups of output channels, as its vertex writes them.
        vector = self.occupancy.spread(result.num_bytes, group * result.dtype.num_bytes)
        if is_joint(self.solution, Purpose.LINEAR_WEIGHT_GRAD):
            return gradient_mapping(self.solution, self.occupancy, result, axis)
        order = Grouped(result.shape, axis, group, self._tiles("out"))
        return TileMapping(vector, Layout(order))

    def input_mappings(self) -> tuple[TileMapping, ...]:
        """The mapping wanted for each input of the op, in their order."""
        operands = sorted((self.roles.field, self.roles.weights), key=lambda o: o.index)
        return tuple(self.mapping_of(operand) for operand in operands)

    def mapping_of(self, operand: Operand) -> TileMapping:
        """Spread over the tiles that use it, the summed dimension innermost."""
        # Zeros that fill a group up are no part of the tensor, so a wish has only
        # groups that divide what there is.
        group = math.gcd(self._in_group(operand), self._num_summed(operand))
        vector = self._spread(operand, group)
        order = Grouped(
            operand.type.shape, operand.axis, group, self._tiles_of(operand)
        )
        return TileMapping(vector, Layout(order))

    def _spread(self, operand: Operand, group: int) -> TileVector:
        """Bytes by tile: what the same tiles read lies on some of them.

        On no more than get a least number of bytes, which bounds the messages that each
        of the readers has to receive (lib/poplin/Convolution.cpp,
        mapActivationsOrWeights). Weights lie on the last of the tiles, inputs on the
        first.
        """
        split, serial = self.solution.split, self.solution.setting.serial
        is_field = operand == self.roles.field
        readers = split.out_split if is_field else split.field.count
        parts = serial.in_parts if is_field else serial.count
        least = _MIN_INPUT_BYTES if is_field else _MIN_WEIGHT_BYTES
        num_bytes, num_used = operand.type.num_bytes, split.num_used
        grain = operand.type.dtype.num_bytes * self._grain(is_field, group)
        sets = num_used // readers
        each = ceil_div(num_bytes, sets * parts)
        num_tiles = sets * num_linear_tiles(each, grain, readers, least)
        return self.occupancy.spread_over(num_bytes, grain, num_tiles, not is_field)

    def _grain(self, is_field: bool, group: int) -> int:
        """Elements that stay on one tile: the groups that a vertex takes at once."""
        setting = self.solution.setting
        method, problem = setting.method, setting.form.problem
        grain = group * math.gcd(method.conv_group, problem.groups)
        if is_field:
            return grain
        return grain * math.gcd(method.out_group, problem.out_channels)

    def _tiles_of(self, operand: Operand) -> Tiles:
        if operand != self.roles.field:
            return self._tiles("weights")
        if is_joint(self.solution, Purpose.LINEAR):
            return joint_tiles(self.solution)
        return self._tiles("in")

    def _tiles(self, role: str) -> ConvTiles:
        """The split of an operand or the result, as its layout remembers it."""
        split, serial = self.solution.split, self.solution.setting.serial
        return ConvTiles(
            role,
            groups=split.groups_split,
            field=split.field.shares,
            kernel=split.kernel.count,
            ins=split.in_split,
            outs=split.out_split,
            out_parts=serial.out_parts,
            in_parts=serial.in_parts,
            is_swapped=self.solution.setting.form.is_swapped,
            first_tile=self.occupancy.first_tile,
        )

    def _in_group(self, operand: Operand) -> int:
        """Neighbours that the vertices want, zeros that fill a group up included."""
        group = self.solution.setting.method.in_group
        return (
            group if self._keeps_channels() else min(group, self._num_summed(operand))
        )

    def _num_summed(self, operand: Operand) -> int:
        """Elements of the operand that one sum runs over, side by side."""
        if self._keeps_channels():
            return self.problem.in_channels
        return operand.type.shape[operand.axis]

    def _keeps_channels(self) -> bool:
        """Whether input channels of the form are those of the op, and no more."""
        return (
            self.solution.setting.form.problem.in_channels == self.problem.in_channels
        )

    def adjacency_of(self, operand: Operand) -> Adjacency:
        """Elements that must be neighbours in memory for the vertices."""
        group = self._in_group(operand)
        return adjacency_of_axis(operand.type.shape, operand.axis, group)

    def turned_group(self, operand: Operand) -> int:
        """Elements that are adjacent once another dimension is the innermost.

        Weights are turned for the backward pass before they are padded. Not so if that
        leaves single elements: then they are padded first.
        """
        group = self._in_group(operand)
        is_backward = self.problem.purpose is Purpose.LINEAR_INPUT_GRAD
        if not is_backward or operand.index != _WEIGHTS_OF_PRODUCT:
            return group
        common = math.gcd(group, self._num_summed(operand))
        # Single elements could only be transposed one by one.
        return common if common > 1 else group


def roles_in_form(roles: Roles, solution: Solution) -> Roles:
    """The roles as the form has them: swapped operands block the result by rows."""
    if not solution.setting.form.is_swapped:
        return roles
    return replace(
        roles,
        field=roles.weights,
        weights=roles.field,
        out_axis=roles.rows_axis,
        rows_axis=roles.out_axis,
    )
