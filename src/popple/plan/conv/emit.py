"""Emission: a chosen split becomes the steps, temporaries and mappings of an OpPlan.

In: a PlanRequest, its ConvProblem and which operand plays which role. Out: an OpPlan:
operands brought to the tiles, partials, sums in stages, casts; serial parts as a Loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from popple.graph import DType
from popple.plan.builder import PlanBuilder
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.sizes import (
    BINARY_CODE_BYTES,
    BINARY_STATE_BYTES,
    IN_PLACE_STATE_BYTES,
)
from popple.plan.conv.cost import is_bus_shared
from popple.plan.conv.describe import describe_choice, describe_runners_up
from popple.plan.conv.joint import are_weights_home, turn_weights
from popple.plan.conv.occupancy import add_multi, find_occupancy
from popple.plan.conv.problem import ConvProblem, Purpose
from popple.plan.conv.search import Choice, Solution, find_choice
from popple.plan.conv.splits import work_of
from popple.plan.conv.supply import Need, Supply, supply_operand
from popple.plan.conv.vertices import (
    add_in_place_cycles,
    cast_cycles,
    reduce_cycles,
    slice_cycles,
)
from popple.plan.conv.wishes import Operand, Roles, Wishes, roles_in_form
from popple.plan.opplan import Move, OpPlan, PlanRequest
from popple.program import TileVector, VertexGroup
from popple.target import Chip
from popple.units import ceil_div

_COUNTER_BYTES = 4
"""The number of a turn, an unsigned int."""


def plan_conv(
    request: PlanRequest, rule: str, problem: ConvProblem, roles: Roles
) -> OpPlan:
    """The best plan of a problem as steps on tiles."""
    reference = request.share.reference if request.share else ()
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
        [emitter.wishes.output_mapping()],
        emitter.wishes.input_mappings(),
        flops=2 * problem.num_macs,
        runners_up=describe_runners_up(choice),
        is_memory_bound=choice.is_memory_bound,
        is_interleaved=emitter.is_output_interleaved,
    )


def _own_tiles(request: PlanRequest) -> tuple[int, int]:
    """First tile and number of tiles that the plan may use, by default all."""
    if (share := request.share) is None:
        return 0, request.num_tiles
    return share.first_tile, share.num_tiles


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
        self.roles = roles_in_form(roles, solution)
        self.solution = solution
        self.setting = solution.setting
        self.chip = request.target.chip
        first_tile, _ = _own_tiles(request)
        self.occupancy = find_occupancy(solution, self.chip.num_tiles, first_tile)
        self.wishes = Wishes(problem, self.roles, solution, self.occupancy)

    def emit(self, builder: PlanBuilder) -> None:
        """Add all steps of the plan."""
        inputs = self._supply(builder, self.roles.field, "inputs")
        weights = self._supply(builder, self.roles.weights, "weights")
        if self.setting.serial.count == 1:
            held = self._bring(builder, inputs), self._bring(builder, weights)
            self._multiply(builder, held, (*_in_place(inputs), *_in_place(weights)))
            self._finish(builder)
        else:
            self._emit_loop(builder, inputs, weights)

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
            adjacency=self.wishes.adjacency_of(operand),
            turned_group=self.wishes.turned_group(operand),
            copied_bytes=size * copied,
            held_bytes=size * held,
            received_bytes=size * received,
            num_parts=parts,
            is_shared=is_field and self._is_shared(),
        )
        given = self.request.inputs[operand.index]
        wish = self.wishes.mapping_of(operand)
        # A joint plan computes with operands exchanged: the weights are its field.
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
        # A message comes from one tile, so it is no longer than what that tile has.
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
        # Vertices read the rearranged operand where it is, and beside it what came.
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
        self,
        builder: PlanBuilder,
        held: Sequence[tuple[str, ...]],
        reads: tuple[int, ...] = (),
    ) -> None:
        """Partials, then their sums in stages."""
        setting, cost = self.setting, self.solution.cost
        # The cost is that of all turns of a serial loop, the phase that of one.
        cycles = cost.compute // setting.serial.count
        flops = 2 * self.problem.num_macs // setting.serial.count
        group = VertexGroup(
            setting.method.codelet,
            self.occupancy.ones,
            self.occupancy.vector(cycles),
            self.occupancy.spread(flops),
            num_edges=3,
            list_bytes=self._list_bytes(),
        )
        builder.compute("partials", group, reads=reads)
        # Without sums or casts the vertices write the output itself.
        if self._has_partials():
            vector = self.occupancy.vector(cost.partials_bytes)
            builder.begin("partials", vector, setting.method.is_interleaved)
        numbered = [(name, n) for n, names in enumerate(held, 1) for name in names]
        for name, number in numbered:
            builder.end(name)
            # The units load operands and store partials in one cycle, which memory
            # elements allow only if those are different ones.
            if setting.method.is_interleaved:
                builder.mark_operand(name, number)
        self._reduce(builder, self.solution.split.partials)

    def _list_bytes(self) -> int:
        """Lists of the vertex on the fullest tile."""
        work = work_of(self.setting.form.problem, self.solution.split)
        return int(self.setting.method.list_bytes(work)[0])

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
            # Each of `depth` tiles adds up its share of the outputs and has its own
            # partials of them already.
            moved = self.occupancy.vector(outputs * (depth - 1) * size)
            messages = self.occupancy.vector(depth - 1)
            name = f"exchange partials {number}"
            # What is exchanged are partials: inputs of the op may give their memory
            # back.
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
            # The last stage writes the output, unless turns of a loop are yet to be
            # added.
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
        kept = self._bring(builder, inputs) if serial.keeps_inputs else ()
        body = builder.part()
        self._bring_turn(body)
        # Weights differ in every turn; inputs only if input channels are cut.
        self._slice(body, weights)
        held = [self._bring(body, weights)]
        if serial.in_parts > 1:
            self._slice(body, inputs)
        held.append(kept or self._bring(body, inputs))
        self._multiply(body, held, (*_in_place(inputs), *_in_place(weights)))
        self._bring_turn(body)
        self._store(body)
        self._count_turn(body)
        if serial.in_parts > 1:
            # Sums over input channels outlive a turn, so they are memory of the loop.
            vector = self.occupancy.vector(
                self._num_sums() * self.setting.partial_bytes
            )
            builder.begin_next("accumulated", vector)
        builder.repeat("loop buffers", serial.count, body, interleaved="partials")
        for name in (weights.rearranged, *(kept or (inputs.rearranged,))):
            builder.end(name)
        if serial.in_parts > 1:
            if self.setting.is_cast:
                self._cast(builder)
            builder.end("accumulated")

    def _bring_turn(self, body: PlanBuilder) -> None:
        """The number of the turn to all tiles, which slice or store by it.

        It lies on one tile (lib/poplin/Convolution.cpp, loopCounter).
        """
        one = self._on_first_tile(_COUNTER_BYTES)
        every = self.occupancy.ones
        received = every.scaled(_COUNTER_BYTES)
        body.add(Move("exchange turn", one, received, every, reads=()))

    def _count_turn(self, body: PlanBuilder) -> None:
        """One more turn is done."""
        cycles = add_in_place_cycles(1, _COUNTER_BYTES, self.chip.num_workers)
        name, state = "popops::BinaryOp1DInPlace<add", BINARY_STATE_BYTES
        state -= IN_PLACE_STATE_BYTES
        codelet = multi_codelet(name, DType.U32, BINARY_CODE_BYTES, state)
        one = self._on_first_tile(1)
        group = VertexGroup(codelet, one, self._on_first_tile(cycles))
        body.compute("count turn", group, reads=())

    def _on_first_tile(self, value: int) -> TileVector:
        vector = TileVector.of([(1, value)])
        return vector.shifted(self.occupancy.first_tile, self.chip.num_tiles)

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


def _in_place(supply: Supply) -> tuple[int, ...]:
    """The input that the vertices read where it lies, if it need not be exchanged."""
    return () if supply.received_bytes else supply.reads
