"""Emission: a chosen split becomes the steps, temporaries and mappings of an OpPlan.

In: a PlanRequest, its ConvProblem and which operand plays which role. Out: an OpPlan:
operands brought to the tiles, partials, sums in stages, casts; serial parts as a Loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from popple.graph import TensorType
from popple.plan.builder import PlanBuilder
from popple.plan.conv.cost import is_bus_shared
from popple.plan.conv.describe import describe_choice, describe_runners_up
from popple.plan.conv.joint import (
    are_weights_home,
    gradient_mapping,
    is_joint,
    joint_tiles,
    turn_weights,
)
from popple.plan.conv.occupancy import Occupancy, find_occupancy
from popple.plan.conv.phases import add_multi
from popple.plan.conv.problem import ConvProblem, Purpose
from popple.plan.conv.search import Choice, Solution, find_choice
from popple.plan.conv.supply import Need, Supply, supply_operand
from popple.plan.conv.vertices import (
    add_in_place_cycles,
    cast_cycles,
    reduce_cycles,
    slice_cycles,
)
from popple.plan.layout import (
    Adjacency,
    ConvTiles,
    Grouped,
    Layout,
    Tiles,
    adjacency_of_axis,
)
from popple.plan.opplan import Move, OpPlan, PlanRequest, TileMapping
from popple.program import VertexGroup
from popple.target import Chip
from popple.units import ceil_div

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


def plan_conv(
    request: PlanRequest, rule: str, problem: ConvProblem, roles: Roles
) -> OpPlan:
    """The best plan of a problem as steps on tiles."""
    reference = request.signature.ints("reference_cycles")
    memory = request.options.memory_proportion
    choice = find_choice(problem, own_chip(request), memory, reference)
    return plan_choice(request, rule, problem, roles, choice)


def plan_choice(
    request: PlanRequest,
    rule: str,
    problem: ConvProblem,
    roles: Roles,
    choice: Choice,
) -> OpPlan:
    """The steps on tiles of a plan that was chosen."""
    builder = PlanBuilder(request, rule)
    emitter = _Emitter(request, problem, roles, choice.best)
    emitter.emit(builder)
    for key, text in describe_choice(choice, problem.num_macs):
        builder.note(key, text)
    return builder.finish(
        [emitter.output_mapping()],
        emitter.wishes(),
        flops=2 * problem.num_macs,
        runners_up=describe_runners_up(choice),
        is_memory_bound=choice.is_memory_bound,
        is_interleaved=emitter.is_output_interleaved,
    )


def _own_tiles(request: PlanRequest) -> tuple[int, int]:
    """First tile and number of tiles that the plan may use, by default all."""
    tiles = request.signature.ints("tiles")
    return (tiles[0], tiles[1]) if tiles else (0, request.num_tiles)


def own_chip(request: PlanRequest) -> Chip:
    """The chip with the tiles that the plan may use."""
    return replace(request.target.chip, num_tiles=_own_tiles(request)[1])


class _Emitter:
    """Everything the steps of one plan have in common."""

    def __init__(
        self,
        request: PlanRequest,
        problem: ConvProblem,
        roles: Roles,
        solution: Solution,
    ) -> None:
        self.request = request
        self.problem = problem
        self.roles = _as_searched(roles, solution)
        self.solution = solution
        self.setting = solution.setting
        self.chip = request.target.chip
        self.first_tile = _own_tiles(request)[0]
        self.occupancy: Occupancy = find_occupancy(
            solution, self.chip.num_tiles, self.first_tile
        )

    def emit(self, builder: PlanBuilder) -> None:
        """Add all steps of the plan."""
        inputs = self._supply(builder, self.roles.field, "inputs")
        weights = self._supply(builder, self.roles.weights, "weights")
        if self.setting.serial.count == 1:
            held = (*self._bring(builder, inputs), *self._bring(builder, weights))
            self._multiply(builder, held, (*_in_place(inputs), *_in_place(weights)))
            self._finish(builder)
        else:
            self._emit_loop(builder, inputs, weights)

    def output_mapping(self) -> TileMapping:
        """Where the result lies: over the tiles that summed it up."""
        result, method = self.roles.result, self.setting.method
        axis, group = self.roles.out_axis, method.out_group
        group = min(group, result.shape[axis])
        vector = self.occupancy.spread(result.num_bytes, group * result.dtype.num_bytes)
        if is_joint(self.solution, Purpose.LINEAR_WEIGHT_GRAD):
            return gradient_mapping(self.solution, self.occupancy, result, axis)
        order = Grouped(result.shape, axis, group, self._tiles("out"))
        return TileMapping(vector, Layout(order))

    def wishes(self) -> tuple[TileMapping | None, ...]:
        """The mapping wanted for each input of the op, in their order."""
        wanted = {
            operand.index: self._wish(operand, tiles)
            for operand, tiles in (
                (self.roles.field, self._field_tiles()),
                (self.roles.weights, self._tiles("weights")),
            )
        }
        return tuple(wanted[index] for index in sorted(wanted))

    def _field_tiles(self) -> Tiles:
        if is_joint(self.solution, Purpose.LINEAR):
            return joint_tiles(self.solution)
        return self._tiles("in")

    def _wish(self, operand: Operand, tiles: Tiles) -> TileMapping:
        """Spread over the tiles that use it, the summed dimension innermost."""
        group = math.gcd(self._in_group(operand), self._num_summed(operand))
        shape, size = operand.type.shape, operand.type.dtype.num_bytes
        vector = self.occupancy.spread(operand.type.num_bytes, group * size)
        order = Grouped(shape, operand.axis, group, tiles)
        return TileMapping(vector, Layout(order))

    def _tiles(self, role: str) -> ConvTiles:
        return _conv_tiles(self.solution, role, self.first_tile)

    def _in_group(self, operand: Operand) -> int:
        """Neighbours that the vertices want, zeros that fill a group up included."""
        group = self.setting.method.in_group
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
        return self.setting.form.problem.in_channels == self.problem.in_channels

    def _adjacency(self, operand: Operand) -> Adjacency:
        group = self._in_group(operand)
        return adjacency_of_axis(operand.type.shape, operand.axis, group)

    def _turned_group(self, operand: Operand) -> int:
        """Weights are turned for the backward pass before they are padded.

        Not so if that leaves single elements: then they are padded first.
        """
        group = self._in_group(operand)
        is_backward = self.problem.purpose is Purpose.LINEAR_INPUT_GRAD
        if not is_backward or operand.index != _WEIGHTS_OF_PRODUCT:
            return group
        common = math.gcd(group, self._num_summed(operand))
        return common if common > 1 else group

    def _supply(self, builder: PlanBuilder, operand: Operand, name: str) -> Supply:
        """Where the operand comes from, after any rearrangement it needs."""
        is_field = name == "inputs"
        form, split, cost = self.setting.form, self.solution.split, self.solution.cost
        received = cost.received_inputs if is_field else cost.received_weights
        held = split.inputs if is_field else split.weights
        copied = form.copied_inputs if is_field else form.copied_weights
        size = self.setting.element_bytes
        parts = self.setting.serial.in_parts if is_field else self.setting.serial.count
        need = Need(
            name=name,
            position=operand.index,
            type=operand.type,
            adjacency=self._adjacency(operand),
            turned_group=self._turned_group(operand),
            copied_bytes=size * copied,
            held_bytes=size * held,
            received_bytes=size * received,
            num_parts=parts,
            is_shared=is_field and self._is_shared(),
        )
        given = self.request.inputs[operand.index]
        tiles = self._field_tiles() if is_field else self._tiles("weights")
        wish = self._wish(operand, tiles)
        if is_field and are_weights_home(self.solution, given):
            need = replace(need, received_bytes=0)
            if self.problem.purpose is Purpose.LINEAR_INPUT_GRAD:
                return turn_weights(builder, need, self.solution, self.occupancy)
        return supply_operand(builder, need, given, wish, self.occupancy, self.chip)

    def _is_shared(self) -> bool:
        return is_bus_shared(self.solution.split.out_split, self.chip)

    def _bring(self, builder: PlanBuilder, supply: Supply) -> tuple[str, ...]:
        """The exchange that gives every tile its part; names what it occupies."""
        if not supply.received_bytes:
            if supply.copied_after_bytes:
                return supply.sliced, supply.add_copy(builder, self.occupancy)
            return supply.sliced, supply.rearranged
        received = self.occupancy.vector(supply.received_bytes)
        pieces = ceil_div(supply.received_bytes, max(1, supply.piece_bytes))
        builder.add(
            Move(
                f"exchange {supply.name}",
                supply.sent_by_tile,
                received,
                self.occupancy.vector(pieces),
                supply.is_shared,
                supply.reads,
            )
        )
        if supply.is_in_place:
            builder.begin(supply.name, received)
            return supply.name, supply.rearranged, supply.sliced
        builder.end(supply.rearranged)
        builder.end(supply.sliced)
        builder.begin(supply.name, self.occupancy.vector(supply.held_bytes))
        if supply.copied_after_bytes:
            return (supply.add_copy(builder, self.occupancy),)
        return (supply.name,)

    def _multiply(
        self, builder: PlanBuilder, held: tuple[str, ...], reads: tuple[int, ...] = ()
    ) -> None:
        """Partials, then their sums in stages."""
        setting, cost = self.setting, self.solution.cost
        cycles = cost.compute // setting.serial.count
        flops = 2 * self.problem.num_macs // setting.serial.count
        group = VertexGroup(
            setting.method.codelet,
            self.occupancy.ones,
            self.occupancy.vector(cycles),
            self.occupancy.spread(flops),
            num_edges=3,
        )
        builder.compute("partials", group, reads=reads)
        if self._has_partials():
            vector = self.occupancy.vector(cost.partials_bytes)
            builder.begin("partials", vector, setting.method.is_interleaved)
        for name in held:
            builder.end(name)
            if setting.method.is_interleaved:
                builder.mark_operand(name)
        self._reduce(builder, self.solution.split.partials)

    @property
    def is_output_interleaved(self) -> bool:
        """Whether the units write the output itself."""
        return self.setting.method.is_interleaved and not self._has_partials()

    def _has_partials(self) -> bool:
        """Whether partials differ from the output and so need memory of their own."""
        is_summed = self.solution.split.num_summed > 1
        is_added = self.setting.serial.in_parts > 1
        return is_summed or is_added or self.setting.is_cast

    def _reduce(self, builder: PlanBuilder, partials: int) -> None:
        size, stages = self.setting.partial_bytes, self.solution.cost.stages
        previous = "partials"
        for number, depth in enumerate(stages, start=1):
            outputs = ceil_div(partials, depth)
            moved = self.occupancy.vector(outputs * (depth - 1) * size)
            messages = self.occupancy.vector(depth - 1)
            name = f"exchange partials {number}"
            builder.add(Move(name, moved, moved, messages, reads=()))
            builder.begin(f"received partials {number}", moved)
            add_multi(
                builder,
                f"reduce {number}",
                "poplin::ReduceAdd",
                self.occupancy,
                self._reduce_cycles(outputs, depth),
            )
            builder.end(previous)
            builder.end(f"received partials {number}")
            previous = f"sums {number}"
            if number < len(stages) or self.setting.serial.in_parts > 1:
                builder.begin(previous, self.occupancy.vector(outputs * size))
            partials = outputs

    def _reduce_cycles(self, outputs: int, depth: int) -> int:
        size, workers = self.setting.partial_bytes, self.chip.num_workers
        return reduce_cycles(outputs, depth, size, workers)

    def _finish(self, builder: PlanBuilder) -> None:
        """The cast to the output type, if no reduction has done it."""
        if not self.setting.is_cast or self.solution.split.num_summed > 1:
            return
        self._cast(builder)
        builder.end("partials")

    def _cast(self, builder: PlanBuilder) -> None:
        cycles = cast_cycles(self._num_sums(), self.chip.num_workers)
        add_multi(builder, "cast", "popops::Cast1D", self.occupancy, cycles)

    def _num_sums(self) -> int:
        """Sums on the fullest tile once all partials are added up."""
        sums = self.solution.split.partials
        for depth in self.solution.cost.stages:
            sums = ceil_div(sums, depth)
        return sums

    def _emit_loop(self, builder: PlanBuilder, inputs: Supply, weights: Supply) -> None:
        serial = self.setting.serial
        body = builder.part()
        self._slice(body, weights)
        held = self._bring(body, weights)
        if serial.in_parts > 1:
            self._slice(body, inputs)
        held += self._bring(body, inputs)
        self._multiply(body, held, (*_in_place(inputs), *_in_place(weights)))
        self._store(body)
        if serial.in_parts > 1:
            vector = self.occupancy.vector(
                self._num_sums() * self.setting.partial_bytes
            )
            builder.begin_next("accumulated", vector)
        builder.repeat("loop buffers", serial.count, body, interleaved="partials")
        for name in (inputs.rearranged, weights.rearranged):
            builder.end(name)
        if serial.in_parts > 1:
            if self.setting.is_cast:
                self._cast(builder)
            builder.end("accumulated")

    def _slice(self, body: PlanBuilder, supply: Supply) -> None:
        """The operand's part for this turn, cut out where it lies."""
        size = self.setting.element_bytes
        elements = ceil_div(supply.sent_by_tile.maximum, size)
        cycles = slice_cycles(elements, size, self.chip.num_workers)
        name, reads = supply.sliced, supply.reads
        add_multi(body, name, "popops::DynamicSlice1D", self.occupancy, cycles, reads)
        part = self.occupancy.vector(supply.sent_by_tile.maximum)
        body.begin(supply.sliced, part)

    def _store(self, body: PlanBuilder) -> None:
        """This turn's result put in its place, or added to those before."""
        sums, workers = self._num_sums(), self.chip.num_workers
        if self.setting.serial.in_parts > 1:
            size = self.setting.partial_bytes
            cycles = add_in_place_cycles(sums, size, workers)
            add_multi(body, "add", "popops::ScaledAdd", self.occupancy, cycles)
            return
        self._finish(body)
        cycles = slice_cycles(sums, self.problem.output.num_bytes, workers)
        add_multi(
            body, "update", "popops::DynamicUpdateSlice1D", self.occupancy, cycles
        )


def _conv_tiles(solution: Solution, role: str, first_tile: int) -> ConvTiles:
    """The split of an operand or the result, as its layout remembers it."""
    split, serial = solution.split, solution.setting.serial
    return ConvTiles(
        role,
        groups=split.groups_split,
        field=split.field.shares,
        kernel=split.kernel.count,
        ins=split.in_split,
        outs=split.out_split,
        out_parts=serial.out_parts,
        in_parts=serial.in_parts,
        is_swapped=solution.setting.form.is_swapped,
        first_tile=first_tile,
    )


def _as_searched(roles: Roles, solution: Solution) -> Roles:
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


def _in_place(supply: Supply) -> tuple[int, ...]:
    """The input that the vertices read where it lies, if it need not be exchanged."""
    return () if supply.received_bytes else supply.reads
