"""First pass of lowering: a plan for every op and a mapping for every value.

Walks the ops in order. Values the graph is given (weights, state, inputs, constants)
are laid out when an op first reads them: as its plan wishes, else linearly, small ones
on tiles that were not used last. Views of values nobody has laid out wait, and pass a
wish on to the value they view.

With outlining, an op that repeats an earlier one but for where its weights lie takes
over its plan; weights of both are copied to where their common function has them.

Functions of the graph are planned once, when an op first runs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from popple.errors import PlanError, PoppleError
from popple.graph import (
    LOOPS,
    Graph,
    Op,
    Phase,
    Role,
    Signature,
    arguments_of,
    functions_of,
    get_op,
)
from popple.plan.mapping import (
    has_aliases,
    linear_mapping,
    mapping_like,
    source_mapping,
)
from popple.plan.opplan import OpPlan, Share, TileMapping
from popple.plan.plan_log import log_plan
from popple.plan.planner import GENERIC, Planner
from popple.plan.side_by_side import share_side_by_side

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

_PROGRESS_STEP = 64
_NEARLY_ALL = 0.9
# The host streams an input to every chip that reads it, and each has its own copy of a
# constant.
_GIVEN_EVERYWHERE = frozenset({Role.INPUT, Role.CONSTANT})
_FIXED = frozenset({Role.WEIGHT, Role.CONSTANT})

_Inputs = tuple[TileMapping | None, ...]
_Repeated = tuple[Signature, _Inputs, int, Share | None]
"""What repeated ops have in common: where all but their weights lie, chip and tiles"""
_Original = tuple[str, _Inputs]
"""The first of them, and where its inputs lie"""


@dataclass(frozen=True)
class PlannedOps:
    """Plans by op, mappings by value (on their own chip), and the chips of values.

    `copies` says which inputs, by position, an op has copied before it reads them, and
    where to. `functions` are those of the graph, each planned once. With `is_outlined`
    ops that repeat others run as functions, too.
    """

    plans: Mapping[str, OpPlan]
    mappings: Mapping[str, TileMapping]
    chips: Mapping[str, int]
    copies: Mapping[str, Mapping[int, TileMapping]]
    functions: Mapping[str, PlannedFunction] = field(
        default_factory=dict[str, "PlannedFunction"]
    )
    is_outlined: bool = True


@dataclass(frozen=True)
class PlannedFunction:
    """A function of a graph in terms of one chip, whichever runs it.

    Where its arguments and results lie was settled by the first op that ran it: what
    others give it is copied there.
    """

    body: Graph
    planned: PlannedOps
    arguments: tuple[TileMapping, ...]
    results: tuple[TileMapping, ...]


def plan_ops(
    graph: Graph, planner: Planner, progress: Progress | None = None
) -> PlannedOps:
    """Plan every op of a verified graph, and those of its functions."""
    walk = _Walk(graph, planner, {})
    total = len(graph.ops)
    for index, op in enumerate(graph.ops):
        walk.add(op)
        if progress and index % _PROGRESS_STEP == 0:
            progress("plan", index, total)
    if progress:
        progress("plan", total, total)
    return walk.finish()


def source_chip(op: Op) -> int:
    """The chip whose memory an op reads: its own, but for copies between chips."""
    return op.source_chip


class _Walk:
    """What has been planned and laid out so far."""

    def __init__(
        self,
        graph: Graph,
        planner: Planner,
        functions: dict[str, PlannedFunction],
    ) -> None:
        self.plans: dict[str, OpPlan] = {}
        self.mappings: dict[str, TileMapping] = {}
        self.chips: dict[str, int] = {}
        self.copies: dict[str, dict[int, TileMapping]] = {}
        self._graph = graph
        self._planner = planner
        self._shares = share_side_by_side(graph, planner)
        self._functions = functions
        self._waiting: dict[str, Op] = {}  # views by result
        self._next_tile: Counter[int] = Counter()
        self._written = {graph.root(name) for op in graph.ops for name in op.outputs}
        self._originals: dict[_Repeated, _Original] = {}

    def finish(self) -> PlannedOps:
        """Everything planned; what nobody has asked for is laid out now."""
        # The host, or a caller, needs to know where these lie although no op reads
        # them.
        for name in (*self._graph.outputs, *self._graph.arguments, *self._waiting):
            self.settle(name)
        return PlannedOps(
            self.plans,
            self.mappings,
            self.chips,
            self.copies,
            self._functions,
            self._planner.options.outline,
        )

    def add(self, op: Op) -> None:
        """Plan one op; everything it reads is laid out afterwards."""
        try:
            self._note_chips(op)
            if get_op(op.kind).is_view:
                self._add_view(op)
            elif functions_of(op):
                self._add_control(op)
            else:
                self._add_op(op)
        except PoppleError as error:
            place = error.where or op.line or f"{op.kind} %{op.name}"
            raise PlanError(error.what, where=place, remedy=error.remedy) from error

    def settle(self, name: str) -> TileMapping:
        """The mapping of a value, made linear if nobody has asked for another."""
        if (known := self._find(name)) is not None:
            return known
        owner = name
        while owner in self._waiting:
            owner = self._waiting[owner].inputs[0]
        self._set_linear(owner)
        return self._derive(name)

    def _note_chips(self, op: Op) -> None:
        chip = source_chip(op)
        for name in op.inputs:
            root = self._graph.root(name)
            home = self.chips.setdefault(root, chip)
            is_away = home != chip
            if is_away and self._graph.values[root].role not in _GIVEN_EVERYWHERE:
                raise PlanError(
                    f"{op.kind} %{op.name} on chip {chip} reads %{name}, which lies "
                    f"on chip {home}.",
                    where=op.line,
                    remedy="Insert a chip_copy between them.",
                )
        for name in op.outputs:
            self.chips.setdefault(self._graph.root(name), op.chip)

    def _add_view(self, op: Op) -> None:
        self._waiting[op.outputs[0]] = op
        self._find(op.outputs[0])

    def _add_op(self, op: Op) -> None:
        signature = self._graph.signature(op)
        given = tuple(self._find(name) for name in op.inputs)
        share = self._shares.get(op.name)
        plan = self._planner.plan(signature, given, share)
        # The first plan only says how it wants what nobody has laid out.
        settled = self._settle_inputs(op, plan) if None in given else given
        # A repeated op takes over the plan even where its own weights would give
        # another: the code is shared, and the weights are copied.
        if (known := self._find_original(op, signature, settled)) is not None:
            plan = known
        elif None in given:
            wished = tuple(
                have or wish
                for have, wish in zip(given, _wishes(op, plan), strict=True)
            )
            # Another reader, or a view in between, had its own wish: plan once more
            # with where the inputs ended up.
            if settled != wished:
                plan = self._planner.plan(signature, settled, share)
        if plan.rule == GENERIC:
            self._planner.count_generic(signature)
        self.plans[op.name] = plan
        log_plan(op, signature, plan)
        for name, mapping in zip(op.outputs, plan.outputs, strict=True):
            self.mappings[name] = self._shared_mapping(name) or mapping

    def _add_control(self, op: Op) -> None:
        """Plan what an op runs, if it is the first to run it.

        The arguments lie where the function has them as far as nobody else has laid
        them out. A loop leaves its results where its body expects them.
        """
        given = arguments_of(op)
        names = functions_of(op)
        for name in names:
            function = self._functions.get(name) or self._plan_function(name, given)
            for value, wish in zip(given, function.arguments, strict=True):
                if self._find(value) is None:
                    self._grant(value, wish)
        for name in op.inputs:
            self.settle(name)
        first = self._functions[names[0]]
        is_loop = op.kind in LOOPS
        outputs = first.arguments[: len(op.outputs)] if is_loop else first.results
        self.plans[op.name] = OpPlan(op.kind, outputs)
        for name, mapping in zip(op.outputs, outputs, strict=True):
            self.mappings[name] = self._shared_mapping(name) or mapping

    def _plan_function(self, name: str, given: Iterable[str]) -> PlannedFunction:
        body = self._graph.body(name)
        # The planner is shared, so equal ops in and around a function share plans.
        walk = _Walk(body, self._planner, self._functions)
        for argument, value in zip(body.arguments, given, strict=True):
            mapping = self._find(value)
            # A view that repeats elements is copied as what it looks like.
            if mapping and not has_aliases(mapping, body.type_of(argument)):
                walk.mappings[argument] = mapping
        for op in body.ops:
            walk.add(op)
        planned = walk.finish()
        function = PlannedFunction(
            body,
            planned,
            tuple(planned.mappings[name] for name in body.arguments),
            tuple(planned.mappings[name] for name in body.outputs),
        )
        self._functions[name] = function
        return function

    def _find_original(
        self, op: Op, signature: Signature, inputs: _Inputs
    ) -> OpPlan | None:
        """The plan of an earlier op that this one repeats but for its weights."""
        # Updates write what they read: a function of them would have to copy that back.
        if not self._planner.options.outline or op.phase is Phase.UPDATE:
            return None
        weights = [i for i, name in enumerate(op.inputs) if self._is_weight(name)]
        kept = tuple(None if i in weights else m for i, m in enumerate(inputs))
        key = (signature, kept, op.chip, self._shares.get(op.name))
        original, places = self._originals.setdefault(key, (op.name, inputs))
        if original == op.name:
            return None
        # The first op turns out to be a call of the function, too.
        for name in (original, op.name):
            self.copies[name] = {i: m for i in weights if (m := places[i])}
        return self.plans[original]

    def _is_weight(self, name: str) -> bool:
        root = self._graph.root(name)
        return self._graph.values[root].role in _FIXED and root not in self._written

    def _settle_inputs(self, op: Op, plan: OpPlan) -> tuple[TileMapping, ...]:
        for name, wish in zip(op.inputs, _wishes(op, plan), strict=True):
            if wish is not None and self._find(name) is None:
                self._grant(name, wish)
        return tuple(self.settle(name) for name in op.inputs)

    def _grant(self, name: str, wish: TileMapping) -> None:
        """Lay a value out as wished, through the views it is read by."""
        wanted: TileMapping | None = wish
        while wanted is not None and name in self._waiting:
            view = self._waiting[name]
            # A slice says nothing about the rest of its source: the wish ends there.
            wanted = source_mapping(self._graph.signature(view), wanted)
            name = view.inputs[0]
        if wanted is not None:
            self.mappings[name] = wanted

    def _shared_mapping(self, name: str) -> TileMapping | None:
        """A result in place lies where the value lies whose memory it takes."""
        storage = self._graph.values[name].storage
        if not storage:
            return None
        return mapping_like(self.settle(storage), self._graph.type_of(name))

    def _find(self, name: str) -> TileMapping | None:
        """The mapping of a value if it is known or follows from a known one."""
        if (known := self.mappings.get(name)) is not None:
            return known
        view = self._waiting.get(name)
        if view is None or self._find(view.inputs[0]) is None:
            return None
        return self._derive(name)

    def _derive(self, name: str) -> TileMapping:
        """The mapping of a view from that of its source, which is known."""
        if (known := self.mappings.get(name)) is not None:
            return known
        view = self._waiting.pop(name)
        source = self._derive(view.inputs[0])
        plan = self._planner.plan(self._graph.signature(view), (source,))
        self.plans[view.name] = plan
        self.mappings[name] = plan.outputs[0]
        return plan.outputs[0]

    def _set_linear(self, name: str) -> None:
        tensor, chip = self._graph.type_of(name), self._planner.target.chip
        home = self.chips.get(self._graph.root(name), 0)
        mapping = linear_mapping(tensor, chip)
        num_tiles = mapping.bytes_by_tile.num_nonzero
        # Small tensors would all begin on tile 0 and fill it: they take turns. Those
        # that lie nearly everywhere lie alike, so that their updates share code.
        if num_tiles < _NEARLY_ALL * chip.num_tiles:
            mapping = linear_mapping(tensor, chip, self._next_tile[home])
            self._next_tile[home] += num_tiles
        self.mappings[name] = mapping


def _wishes(op: Op, plan: OpPlan) -> tuple[TileMapping | None, ...]:
    return plan.inputs or (None,) * len(op.inputs)
