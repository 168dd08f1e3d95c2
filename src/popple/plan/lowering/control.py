"""Calls, loops and branches as steps: functions emitted once for every chip.

An op that runs a function copies its arguments to where the function has them, calls
it, and copies the results out, so that the next call does not overwrite them. PopART
does the same (willow/src/popx/op/callx.cpp). A function that is run in one place only
works on the caller's own variables as far as they lie where it wants them and it does
not overwrite them.

    call     copies in, Call, copies out
    repeat   copies in, Repeat of (Call, results to the arguments of the next round)
    while    copies in, RepeatWhile of the condition and the same
    branch   If or Switch of such calls, each leaving its results in one place
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from popple.graph import (
    LOOPS,
    Execution,
    Graph,
    Op,
    Value,
    arguments_of,
    functions_of,
    qualified,
)
from popple.plan.lowering.plan_ops import PlannedFunction, PlannedOps
from popple.plan.lowering.structure import sequence
from popple.plan.opplan import TileMapping
from popple.program import Call, If, Repeat, RepeatWhile, Step, Switch


@dataclass(frozen=True)
class Copied:
    """A variable to be copied into another, both on one chip, and how both lie."""

    source: str
    target: str
    source_mapping: TileMapping
    target_mapping: TileMapping


class BodyEmitter(Protocol):
    """What emits the ops of the main graph, or of one function on one chip."""

    def steps_of(self, ops: Iterable[Op]) -> list[Step]:
        """The steps of ops in their order."""
        ...

    def variable(self, name: str, chip: int) -> str:
        """Name of the variable that holds a value on a chip, made if it is new."""
        ...

    def mapping_of(self, name: str) -> TileMapping:
        """Where a value lies, in terms of its chip."""
        ...

    def share_variable(self, name: str, variable: str) -> None:
        """Let a value be held by a variable that is there already."""
        ...

    def copy_steps(self, op: Op, name: str, copies: Sequence[Copied]) -> list[Step]:
        """The steps that copy variables, all at the same time."""
        ...

    def body_emitter(
        self, graph: Graph, planned: PlannedOps, held: dict[str, str], mark: str
    ) -> BodyEmitter:
        """An emitter for a function; `held` are its values that variables hold.

        `mark` is part of the names of its steps.
        """
        ...


@dataclass(frozen=True)
class Emitted:
    """A function on one chip: how to call it, and the variables it works on."""

    key: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]


@dataclass
class EmittedFunctions:
    """The functions of a program as far as they are emitted, for all its emitters.

    `steps` are their bodies by the name that calls use, `sites` in how many places of
    the graph each function is run.
    """

    sites: Counter[str]
    execution: Execution
    steps: dict[str, Step] = field(default_factory=dict[str, Step])
    _known: dict[tuple[str, int], Emitted] = field(
        default_factory=dict[tuple[str, int], Emitted]
    )

    def is_shared(self, name: str) -> bool:
        """Whether several places run a function."""
        return self.sites[name] > 1

    def get(
        self,
        name: str,
        function: PlannedFunction,
        chip: int,
        emitter: BodyEmitter,
        held: dict[str, str],
    ) -> Emitted:
        """The function on a chip; `held` are arguments that lie in the caller's memory.

        Those are the first caller's, so there are none if there are several callers.
        """
        if (known := self._known.get((name, chip))) is not None:
            return known
        # Names on one chip stay as the user knows them.
        mark = "" if self.execution.num_chips == 1 else f"@{chip}"
        label = f"{name}(){mark}"
        body, planned = _placed(function, label, name, chip, self.execution)
        inner = emitter.body_emitter(
            body, planned, {_own(label, a): name for a, name in held.items()}, mark
        )
        steps = inner.steps_of(body.ops)
        emitted = Emitted(
            label,
            tuple(inner.variable(name, chip) for name in body.arguments),
            tuple(inner.variable(name, chip) for name in body.outputs),
        )
        self.steps[label] = sequence(steps, label)
        self._known[name, chip] = emitted
        return emitted


def _own(label: str, name: str) -> str:
    """The name of a value of a function on one chip."""
    return f"{label}/{name}"


def _placed(
    function: PlannedFunction, label: str, name: str, chip: int, execution: Execution
) -> tuple[Graph, PlannedOps]:
    """A function with names of its own, on a chip of the program."""
    body, planned = function.body, function.planned
    values = [
        Value(
            _own(label, value.name),
            value.type,
            value.role,
            _own(label, value.storage) if value.storage else "",
        )
        for value in body.values.values()
    ]
    ops = tuple(
        replace(
            op,
            # Ops are named by function, not by chip: costs of all chips are one op's.
            name=qualified(name, op.name),
            inputs=tuple(_own(label, each) for each in op.inputs),
            outputs=tuple(_own(label, each) for each in op.outputs),
            chip=chip,
        )
        for op in body.ops
    )
    graph = replace(
        body,
        values={value.name: value for value in values},
        ops=ops,
        outputs=tuple(_own(label, each) for each in body.outputs),
        execution=execution,
    )
    renamed = replace(
        planned,
        plans={qualified(name, key): plan for key, plan in planned.plans.items()},
        mappings={_own(label, key): each for key, each in planned.mappings.items()},
        chips={_own(label, key): chip for key in planned.chips},
        copies={qualified(name, key): each for key, each in planned.copies.items()},
    )
    return graph, renamed


class ControlSteps:
    """The steps of the control ops of one emitter."""

    def __init__(
        self,
        graph: Graph,
        planned: PlannedOps,
        emitted: EmittedFunctions,
        emitter: BodyEmitter,
    ) -> None:
        self._graph = graph
        self._planned = planned
        self._emitted = emitted
        self._emitter = emitter

    def steps_of(self, op: Op) -> list[Step]:
        """The steps of one call, loop or branch."""
        if op.kind in LOOPS:
            return self._loop(op)
        if op.kind == "branch":
            return [self._branch(op)]
        (name,) = functions_of(op)
        emitted = self._enter(name, op)
        return [
            *self._copies_in(op, name, emitted),
            Call(emitted.key, op.name),
            *self._copies_out(op, name, emitted, may_share=True),
        ]

    def _function(self, name: str) -> PlannedFunction:
        return self._planned.functions[name]

    def _enter(self, name: str, op: Op, num_carried: int = 0) -> Emitted:
        """The function, emitted if this is the first op that runs it here.

        The first `num_carried` arguments change from round to round.
        """
        function = self._function(name)
        held: dict[str, str] = {}
        if not self._emitted.is_shared(name):
            values = zip(function.body.arguments, arguments_of(op), strict=True)
            # A round overwrites what is carried, and the caller may still need its own.
            kept = list(values)[num_carried:]
            held = {
                argument: self._emitter.variable(value, op.chip)
                for argument, value in kept
                if self._may_hold(function, argument, value)
            }
        return self._emitted.get(name, function, op.chip, self._emitter, held)

    def _may_hold(self, function: PlannedFunction, argument: str, value: str) -> bool:
        """Whether a function may work on the memory of a value of its caller."""
        body = function.body
        written = {body.root(n) for op in body.ops for n in op.outputs}
        is_here = function.planned.mappings[argument] == self._mapping(value)
        return is_here and argument not in written

    def _mapping(self, name: str) -> TileMapping:
        return self._emitter.mapping_of(name)

    # -- copies

    def _copies_in(
        self, op: Op, name: str, emitted: Emitted, label: str = "arguments"
    ) -> list[Step]:
        function = self._function(name)
        copies = [
            Copied(source, target, self._mapping(value), mapping)
            for value, target, mapping in zip(
                arguments_of(op), emitted.arguments, function.arguments, strict=True
            )
            if (source := self._emitter.variable(value, op.chip)) != target
        ]
        return self._emitter.copy_steps(op, label, copies)

    def _copies_out(
        self,
        op: Op,
        name: str,
        emitted: Emitted,
        may_share: bool,
        label: str = "results",
    ) -> list[Step]:
        """Results to where the caller has them; those nobody overwrites stay."""
        function = self._function(name)
        is_alone = may_share and not self._emitted.is_shared(name)
        copies: list[Copied] = []
        # A result that is an argument, or a result given twice, would share the memory
        # of a value that is still the caller's.
        taken: set[str] = set(emitted.arguments)
        for value, source, mapping in zip(
            op.outputs, emitted.results, function.results, strict=True
        ):
            if is_alone and source not in taken and not self._is_stored(value):
                taken.add(source)
                self._emitter.share_variable(value, source)
                continue
            target = self._emitter.variable(value, op.chip)
            copies.append(Copied(source, target, mapping, self._mapping(value)))
        return self._emitter.copy_steps(op, label, copies)

    def _is_stored(self, name: str) -> bool:
        """Whether a value is kept in the memory of another one."""
        return bool(self._graph.values[name].storage)

    # -- loops

    def _loop(self, op: Op) -> list[Step]:
        name = functions_of(op)[0]
        emitted = self._enter(name, op, num_carried=len(op.outputs))
        begin = self._copies_in(op, name, emitted)
        # Copied within the round: the function has fixed places for arguments and
        # results.
        round_ = sequence([Call(emitted.key, op.name), *self._carry(op, name, emitted)])
        count = op.attrs["count"]
        assert isinstance(count, int)
        if op.kind == "repeat":
            loop: Step = Repeat(count, round_, op.name)
        else:
            loop = self._while(op, emitted, round_, count)
        return [*begin, loop, *self._loop_results(op, name, emitted)]

    def _carry(self, op: Op, name: str, emitted: Emitted) -> list[Step]:
        """Results of a round to where the next one expects them."""
        function = self._function(name)
        copies = [
            Copied(source, target, made, wanted)
            for source, target, made, wanted in zip(
                emitted.results,
                emitted.arguments,
                function.results,
                function.arguments,
                strict=False,
            )
            if source != target
        ]
        return self._emitter.copy_steps(op, "carried", copies)

    def _while(self, op: Op, body: Emitted, round_: Step, count: int) -> RepeatWhile:
        """The condition reads the arguments of the body, which are those of the round.

        One that lies elsewhere, or is run elsewhere too, has them copied each time.
        """
        name = str(op.attrs["condition"])
        function = self._function(name)
        arguments = function.body.arguments
        held: dict[str, str] = {}
        if not self._emitted.is_shared(name):
            held = dict(zip(arguments, body.arguments, strict=True))
        emitted = self._emitted.get(name, function, op.chip, self._emitter, held)
        own = self._function(functions_of(op)[0])
        copies = [
            Copied(source, target, here, there)
            for source, target, here, there in zip(
                body.arguments,
                emitted.arguments,
                own.arguments,
                function.arguments,
                strict=True,
            )
            if source != target
        ]
        test = [
            *self._emitter.copy_steps(op, "condition", copies),
            Call(emitted.key, op.name),
        ]
        return RepeatWhile(sequence(test), emitted.results[0], round_, count, op.name)

    def _loop_results(self, op: Op, name: str, emitted: Emitted) -> list[Step]:
        """What was carried last; it stays unless other loops run the same function."""
        function = self._function(name)
        is_alone = not self._emitted.is_shared(name)
        copies: list[Copied] = []
        for value, source, mapping in zip(
            op.outputs, emitted.arguments, function.arguments, strict=False
        ):
            if is_alone and not self._is_stored(value):
                self._emitter.share_variable(value, source)
                continue
            target = self._emitter.variable(value, op.chip)
            copies.append(Copied(source, target, mapping, self._mapping(value)))
        return self._emitter.copy_steps(op, "results", copies)

    # -- branches

    def _branch(self, op: Op) -> Step:
        selector = self._emitter.variable(op.inputs[0], op.chip)
        arms = [self._arm(op, name) for name in functions_of(op)]
        dtype = self._graph.type_of(op.inputs[0]).dtype
        if dtype.value == "bool" and len(arms) == 2:
            return If(selector, arms[0], arms[1], op.name)
        # Any number out of range takes the last side, as in TensorFlow's Case.
        *cases, default = arms
        return Switch(selector, tuple(enumerate(cases)), default, op.name)

    def _arm(self, op: Op, name: str) -> Step:
        emitted = self._enter(name, op)
        return sequence(
            [
                *self._copies_in(op, name, emitted, f"arguments of {name}"),
                Call(emitted.key, name),
                # Sides differ in where their results lie, so their copies do too.
                *self._copies_out(
                    op, name, emitted, may_share=False, label=f"results of {name}"
                ),
            ],
            name,
        )
