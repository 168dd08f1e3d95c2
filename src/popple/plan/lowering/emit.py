"""Second pass of lowering: the leaves of every op, and the variables they use.

Plans are in terms of one chip; here their vectors move to the op's chip in the space
of all tiles, and steps are tied to variables. A value becomes the variable of the
value that owns its memory. Inputs of an op are read by the steps that say so, else by
all its steps, results are written by the last one, temporaries live as their plan says.
Ops that run functions are in `control.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Sequenced
from dataclasses import replace
from itertools import chain, groupby

from popple.graph import Graph, Op, Role, functions_of, num_sites
from popple.plan.lowering.calls import (
    Call,
    Copy,
    copy_name,
    find_calls,
    local_copies,
    moved_copies,
    ordering,
)
from popple.plan.lowering.chip_tiles import ChipTiles
from popple.plan.lowering.control import ControlSteps, Copied, EmittedFunctions
from popple.plan.lowering.merge import merge_steps
from popple.plan.lowering.plan_ops import PlannedOps, source_chip
from popple.plan.lowering.step_lowering import Access, StepLowering, step_names
from popple.plan.opplan import (
    Compute,
    Loop,
    Move,
    OpPlan,
    PlanStep,
    Temporary,
    TileMapping,
)
from popple.program import (
    Category,
    ComputeSet,
    Direction,
    Exchange,
    Execute,
    Step,
    StreamCopy,
    Variable,
    VertexGroup,
    WriteUndef,
)
from popple.target import Target

_ALWAYS_LIVE = frozenset({Role.WEIGHT, Role.STATE, Role.CONSTANT})
# Nobody writes these, so copies on several chips cannot come to differ.
_COPIED_ROLES = frozenset({Role.INPUT, Role.CONSTANT})


class Emitter:
    """Turns planned ops into steps, and collects the variables of the program.

    One emitter is for the main graph; each function has one of its own on every chip
    that runs it, which works on the same tables (`around`). `held` are values that the
    variables of others hold. `mark` tells apart the steps of a function on its chips.
    """

    def __init__(
        self,
        graph: Graph,
        planned: PlannedOps,
        target: Target,
        around: Emitter | None = None,
        held: dict[str, str] | None = None,
        mark: str = "",
    ) -> None:
        self._graph = graph
        self._planned = planned
        self._target = target
        self._chip = target.chip
        self._held = held or {}
        self.variables: dict[str, Variable] = {}
        self._emitted = EmittedFunctions(num_sites(graph), graph.execution)
        # Groups of vertices stay alive as long as their plans, which `planned` holds.
        self._tiles = ChipTiles(graph.execution.num_chips, target.chip.num_tiles)
        if around is not None:
            self.variables, self._emitted = around.variables, around._emitted
            self._tiles = around._tiles
        self._steps = StepLowering(self._tiles, mark)
        self._control = ControlSteps(graph, planned, self._emitted, self)
        self._written = _written_roots(graph)
        # Without a reader, liveness would never learn that these are over.
        self._unread = self._written - _read_roots(graph)
        calls = find_calls(graph, planned)
        self._beginning = {call.ops[0].name: call for call in calls}
        self._ending = {call.ops[-1].name: call for call in calls}
        self._inside: dict[str, str] = {}  # variables of the function that runs

    @property
    def functions(self) -> Mapping[str, Step]:
        """The functions that the steps so far call."""
        return self._emitted.steps

    def body_emitter(
        self, graph: Graph, planned: PlannedOps, held: dict[str, str], mark: str
    ) -> Emitter:
        """An emitter for a function; `held` are its values that variables hold."""
        return Emitter(graph, planned, self._target, self, held, mark)

    def steps_of(self, ops: Iterable[Op]) -> list[Step]:
        """The steps of ops in their order; those side by side share theirs."""
        steps: list[Step] = []
        for name, members in groupby(ops, lambda op: op.notes.side_by_side):
            lists = [self.op_steps(op) for op in members]
            steps += merge_steps(lists) if name else chain.from_iterable(lists)
        return steps

    def op_steps(self, op: Op) -> list[Step]:
        """The steps of one op, none for a view."""
        if functions_of(op):
            return self._control.steps_of(op)
        plan = self._planned.plans[op.name]
        steps = self._begin_call(op)
        temporaries = self._add_temporaries(op, plan)
        writes = self._variables_of(op.outputs, op.chip)
        if plan.is_interleaved:
            self._interleave(writes)
        last = len(plan.steps) - 1
        names = step_names(plan.steps)
        inputs: dict[int, str] = {}
        for index, step in enumerate(plan.steps):
            # A plan does not tell when it writes: results are taken to live from its
            # last step on.
            made = writes if index == last else ()
            access = (
                (*self._variables_read(op, step, inputs), *_alive(temporaries, index)),
                (*_begun(temporaries, index), *made),
            )
            steps.append(self._steps.lower(op, step, names[index], access))
            # No step reads these, so only this says that their contents are over.
            ended = _begun([t for t in temporaries if t[1].last == index], index)
            unread = (name for name in made if name in self._unread)
            steps += [WriteUndef(name, op.name) for name in (*ended, *unread)]
        return steps + self._end_call(op)

    def stream_in(self, name: str, chip: int) -> StreamCopy:
        """An input arriving from the host."""
        variable = self.variable(name, chip)
        mapping = self._planned.mappings[name]
        vector = self._tiles.vector(mapping.bytes_by_tile, chip)
        # The variable, not the value: an input on several chips has several streams.
        label = f"{variable}/stream_in"
        return StreamCopy(label, Direction.FROM_HOST, vector, writes=(variable,))

    def stream_out(self, name: str, chip: int) -> StreamCopy:
        """A result leaving for the host."""
        variable = self.variable(name, chip)
        vector = self._tiles.vector(self._planned.mappings[name].bytes_by_tile, chip)
        label = f"{name}/stream_out"
        return StreamCopy(label, Direction.TO_HOST, vector, reads=(variable,))

    def variable(self, name: str, chip: int) -> str:
        """Name of the variable that holds a value on a chip, made if it is new."""
        root = self._graph.root(name)
        if (known := self._inside.get(root) or self._held.get(root)) is not None:
            return known
        value = self._graph.values[root]
        home = self._planned.chips.get(root, chip)
        # Inputs and constants lie on every chip that reads them; nothing else does.
        is_copy = value.role in _COPIED_ROLES and home != chip
        key = f"{root}@{chip}" if is_copy else root
        if key not in self.variables:
            place = chip if is_copy else home
            mapping = self._planned.mappings.get(root) or self._planned.mappings[name]
            self.variables[key] = self._make_variable(key, root, mapping, place)
        return key

    def mapping_of(self, name: str) -> TileMapping:
        """Where a value lies, in terms of its chip."""
        return self._planned.mappings[name]

    def share_variable(self, name: str, variable: str) -> None:
        """Let a value be held by a variable that is there already."""
        self._held[self._graph.root(name)] = variable

    def copy_steps(self, op: Op, name: str, copies: Sequenced[Copied]) -> list[Step]:
        """The steps that copy variables, all at the same time.

        Those that stay on their tiles are one compute phase, those that move one
        exchange; what arrives in another order is put in order there.
        """
        local = [c for c in copies if c.source_mapping == c.target_mapping]
        moved = [c for c in copies if c.source_mapping != c.target_mapping]
        steps: list[Step] = []
        if local:
            group = local_copies([c.source_mapping for c in local], self._chip)
            steps.append(self._copy_phase(op, f"copy {name}", group, local))
        if moved:
            sent, received = moved_copies(
                [c.source_mapping for c in moved],
                [c.target_mapping for c in moved],
                self._chip,
            )
            vectors = (
                self._tiles.vector(sent, op.chip),
                self._tiles.vector(received, op.chip),
            )
            label = self._steps.label(op, f"move {name}")
            access = tuple(c.source for c in moved), tuple(c.target for c in moved)
            steps.append(Exchange(label, *vectors, None, False, *access, op.name))
        shuffled = [c for c in moved if not _is_in_order(c)]
        if shuffled:
            group = ordering([c.target_mapping for c in shuffled], self._chip)
            targets = [replace(c, source=c.target) for c in shuffled]
            steps.append(self._copy_phase(op, f"order {name}", group, targets))
        return steps

    def _copy_phase(
        self, op: Op, name: str, group: VertexGroup, copies: Sequenced[Copied]
    ) -> Execute:
        vertices = ComputeSet(
            self._steps.label(op, name), (self._tiles.group(group, op.chip),)
        )
        reads = tuple(dict.fromkeys(c.source for c in copies))
        return Execute(vertices, reads, tuple(c.target for c in copies), op.name)

    def _make_variable(
        self, key: str, root: str, mapping: TileMapping, chip: int
    ) -> Variable:
        role = self._graph.values[root].role
        # A constant that is updated in place is a variable like others.
        is_constant = role is Role.CONSTANT and root not in self._written
        return Variable(
            key,
            self._tiles.vector(mapping.bytes_by_tile, chip),
            Category.CONSTANT if is_constant else Category.VARIABLE,
            is_always_live=role in _ALWAYS_LIVE,
        )

    def _variables_of(self, names: Iterable[str], chip: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.variable(name, chip) for name in names))

    def _variables_read(
        self, op: Op, step: PlanStep, inputs: dict[int, str]
    ) -> tuple[str, ...]:
        """The variables of the inputs that a step reads, copies where there are.

        `inputs` are those of the op by position, as far as its steps so far read them.
        """
        positions = _positions_read(step, len(op.inputs))
        for position in positions:
            if position not in inputs:
                inputs[position] = self._variable_read(op, position)
        return tuple(dict.fromkeys(map(inputs.__getitem__, positions)))

    def _variable_read(self, op: Op, position: int) -> str:
        if position in self._planned.copies.get(op.name, ()):
            return copy_name(op, position)
        return self.variable(op.inputs[position], source_chip(op))

    def _begin_call(self, first: Op) -> list[Step]:
        """The copies to where the function that begins here has what it reads.

        They stand where the function is called, so they are no steps of its ops.
        """
        if (call := self._beginning.get(first.name)) is None:
            return []
        chip = first.chip
        for copy in call.weights:
            vector = self._tiles.vector(copy.place.bytes_by_tile, chip)
            self.variables[copy.name] = Variable(copy.name, vector)
        outside = self._variables_of(call.entering, chip)
        inside = self._enter(call)
        # Copies of one call are one phase: those on their tile, and those that move.
        local = [copy for copy in call.weights if copy.is_local]
        moved = [copy for copy in call.weights if not copy.is_local]
        reads, writes = self._access_of(local)
        mappings = [copy.source for copy in local]
        mappings += map(self.mapping_of, call.entering)
        access = (*reads, *outside), (*writes, *inside)
        return [
            *self._copies_on_tiles(first, "copy arguments", mappings, access),
            *self._moves(first, moved),
        ]

    def _enter(self, call: Call) -> tuple[str, ...]:
        """Make the variables of a function; names those of what enters it."""
        for root in (*call.entering, *call.leaving):
            name = call.inside(root)
            vector = self.mapping_of(root).bytes_by_tile
            vector = self._tiles.vector(vector, call.ops[0].chip)
            self.variables[name] = Variable(name, vector)
            self._inside[root] = name
        return tuple(map(call.inside, call.entering))

    def _end_call(self, last: Op) -> list[Step]:
        """The copies of a function's results to where others read them."""
        if (call := self._ending.get(last.name)) is None:
            return []
        self._inside.clear()
        inside = tuple(map(call.inside, call.leaving))
        access = inside, self._variables_of(call.leaving, last.chip)
        mappings = list(map(self.mapping_of, call.leaving))
        return self._copies_on_tiles(last, "copy results", mappings, access)

    def _copies_on_tiles(
        self, op: Op, name: str, mappings: list[TileMapping], access: Access
    ) -> list[Step]:
        if not mappings:
            return []
        group = self._tiles.group(local_copies(mappings, self._chip), op.chip)
        return [Execute(ComputeSet(self._steps.label(op, name), (group,)), *access)]

    def _moves(self, first: Op, moved: list[Copy]) -> list[Step]:
        if not moved:
            return []
        sent, received = moved_copies(
            [copy.source for copy in moved], [copy.place for copy in moved], self._chip
        )
        vectors = (
            self._tiles.vector(sent, first.chip),
            self._tiles.vector(received, first.chip),
        )
        name = self._steps.label(first, "move weights")
        return [Exchange(name, *vectors, None, False, *self._access_of(moved))]

    def _interleave(self, names: Iterable[str]) -> None:
        for name in names:
            self.variables[name] = replace(self.variables[name], is_interleaved=True)

    def _access_of(self, copies: list[Copy]) -> Access:
        names = (copy.op.inputs[copy.position] for copy in copies)
        reads = self._variables_of(names, copies[0].op.chip) if copies else ()
        return reads, tuple(copy.name for copy in copies)

    def _add_temporaries(self, op: Op, plan: OpPlan) -> list[tuple[str, Temporary]]:
        found: list[tuple[str, Temporary]] = []
        for item in plan.temporaries:
            name = self._steps.label(op, item.name)
            # Several temporaries of one plan may have the same name.
            while name in self.variables:
                name += "'"
            self.variables[name] = Variable(
                name,
                self._tiles.vector(item.bytes_by_tile, op.chip),
                item.category,
                is_interleaved=item.is_interleaved,
                operand=item.operand,
                is_gathered=item.is_gathered,
            )
            found.append((name, item))
        return found


def _is_in_order(copy: Copied) -> bool:
    return copy.source_mapping.layout.is_ordered_as(copy.target_mapping.layout)


def _written_roots(graph: Graph) -> frozenset[str]:
    """Owners of memory that an op with results of its own writes into."""
    return frozenset(graph.root(name) for op in graph.ops for name in op.outputs)


def _read_roots(graph: Graph) -> frozenset[str]:
    """Owners of memory that is read: by an op, by the host or in the next run."""
    read = [*graph.outputs, *(name for op in graph.ops for name in op.inputs)]
    given = (v.name for v in graph.values.values() if v.role is not Role.ACTIVATION)
    return frozenset((*map(graph.root, read), *given))


def _positions_read(step: PlanStep, num_inputs: int) -> Sequenced[int]:
    """Positions of the inputs that a step reads, a loop those of its steps."""
    if isinstance(step, Loop):
        return sorted({p for s in step.steps for p in _positions_read(s, num_inputs)})
    reads = step.reads if isinstance(step, Compute | Move) else None
    return range(num_inputs) if reads is None else reads


def _begun(temporaries: list[tuple[str, Temporary]], index: int) -> tuple[str, ...]:
    return tuple(name for name, item in temporaries if item.first == index)


def _alive(temporaries: list[tuple[str, Temporary]], index: int) -> tuple[str, ...]:
    return tuple(name for name, t in temporaries if t.first < index <= t.last)
