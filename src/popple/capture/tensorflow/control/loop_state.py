"""The variables of a loop whose body is a function, from before the loop to behind it.

Tensors of numbers that change are carried: the op that runs the body gives them to the
first trip, each trip to the next one, the last to the program. Lists are carried if the
body needs a value for them (`carried`), resources only go through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.control.carried import length_of
from popple.capture.tensorflow.control.functions import (
    captured,
    close_function,
    is_number,
    needed_values,
    placed,
    prune,
    result_name,
)
from popple.capture.tensorflow.control.scopes import LoopScope
from popple.capture.tensorflow.control.trips import LoopTensors
from popple.capture.tensorflow.framework import Array
from popple.capture.tensorflow.known import (
    AnyList,
    CarriedList,
    Known,
    Slot,
    StackedList,
    TensorList,
)
from popple.graph import Attr, Role

_LISTS = (TensorList, StackedList, CarriedList)
_Place = int | str
"""A variable's position, or the name of a stack"""


@dataclass(frozen=True)
class _Carried:
    """A value before the loop, the body's argument for it, and the body's result."""

    place: _Place
    given: str
    argument: str
    result: str


class LoopState:
    """What a loop is given, what its body makes of it, and what comes out.

    `context` stands for the op that will run the body; CaptureError says why the body
    cannot be a function.
    """

    def __init__(
        self,
        context: OpContext,
        scope: LoopScope,
        tensors: LoopTensors,
        start: Sequence[Known],
    ) -> None:
        self._context = context
        self._scope = scope
        self._tensors = tensors
        self._start = start
        self._state = [self._bound(place, k) for place, k in enumerate(start)]
        self._carried: list[_Carried] = []
        self._lists: dict[_Place, CarriedList] = {}
        self._counters: Mapping[int, Array] = {}

    def given(self) -> list[Known]:
        """The loop's variables as its body sees them at the beginning of a trip."""
        return list(self._state)

    @property
    def arguments(self) -> list[str]:
        """What the body is given and gives back changed."""
        return [each.argument for each in self._carried]

    def finish(self, results: Sequence[Known]) -> None:
        """Take note of what the body made of its variables."""
        for place, result in enumerate(results):
            known = self._state[place]
            if isinstance(known, CarriedList):
                self._finish_list(place, known.slot, result)
            elif not self._tensors.is_passed_through(place):
                self._finish_other(place, result)
        for name, slot in self._scope.stacks.items():
            self._finish_list(name, slot, self._context.effects.stacks[name])

    def drop_counters(self) -> None:
        """Leave out counters that nothing but their own condition reads.

        On the machine a loop of known length counts by itself.
        """
        trips = self._scope.num_trips
        assert trips is not None, "a loop with a counter has a known length"
        self._counters = self._tensors.last_counters(self._start, trips)
        kept = [each for each in self._carried if each.place not in self._counters]
        body = self._scope.builder
        # A counter that another carried value is made of has to stay, and so has what
        # that counter is made of: until nothing is added.
        while True:
            needed = needed_values(body, [each.result for each in kept])
            read = [c for c in self._carried if c.argument in needed and c not in kept]
            if not read:
                break
            kept += read
        self._carried = [each for each in self._carried if each in kept]

    def emit(
        self,
        kind: str,
        bodies: Sequence[GraphBuilder],
        attrs: Mapping[str, Attr],
        decision: str = "",
    ) -> list[Known]:
        """Append the op that runs the loop; what its variables are behind it.

        `bodies` are the body and, for a `while`, the condition, whose result is
        `decision`.
        """
        body, context = bodies[0], placed(self._context, bodies)
        # A value that no trip changes is an argument only: as a result it would be
        # copied in every trip.
        changed = [c for c in self._carried if c.argument != c.result]
        outputs = [[each.result for each in changed], [decision]]
        kept = {c.argument: c.given for c in self._carried if c not in changed}
        fixed: dict[str, str] = {}
        for each, results in zip(bodies, outputs, strict=False):
            prune(each, results)
            # Of what no trip changes only that is given which is read.
            read = {name for op in each.ops for name in op.inputs}
            fixed |= {name: given for name, given in kept.items() if name in read}
            fixed |= {name: name for name in captured(each, results)}
        arguments = [*(each.argument for each in changed), *fixed]
        inputs = [*(each.given for each in changed), *fixed.values()]
        names = [
            close_function(context, each, arguments, results, body)
            for each, results in zip(bodies, outputs, strict=False)
        ]
        runs = dict(zip(("function", "condition"), names, strict=False))
        made: Sequence[str] = ()
        if changed:
            types = [body.type_of(each.argument) for each in changed]
            made = context.emit(kind, inputs, types, attrs={**attrs, **runs})
        values: dict[_Place, str] = {c.place: c.given for c in self._carried}
        values |= {c.place: name for c, name in zip(changed, made, strict=True)}
        self._restore_stacks(values)
        return [self._behind(p, k, values) for p, k in enumerate(self._start)]

    # -- one variable

    def _bound(self, place: int, known: Known) -> Known:
        is_fixed = self._tensors.is_passed_through(place)
        if isinstance(known, _LISTS):
            return self._scope.carry(known, is_fixed)
        if is_fixed or not is_number(known):
            return known
        name = self._tensors.inputs[place].op.name
        given = self._context.name_of(known, f"{name}.start")
        kind = self._context.type_of(given)
        return self._scope.builder.declare(name, kind, Role.ARGUMENT)

    def _finish_other(self, place: int, result: Known) -> None:
        argument, start = self._state[place], self._start[place]
        body, context = self._scope.builder, self._context
        if not isinstance(argument, str):
            # Resources, and what the machine has no part in, cannot be handed from trip
            # to trip.
            if result is not start and result != start:
                raise context.error("one of its variables changes what it is")
            return
        if not is_number(result):
            raise context.error("the shape of one of its variables is not known")
        name = self._tensors.inputs[place].op.name
        made = result_name(body, result, f"{name}.next")
        # The next trip reads the memory that this one wrote: the same bytes on the same
        # tiles.
        if body.type_of(made) != body.type_of(argument):
            raise context.error("the shape of one of its variables changes")
        given = context.name_of(start, f"{name}.start")
        self._carried.append(_Carried(place, given, argument, made))

    def _finish_list(self, place: _Place, slot: Slot, result: Known) -> None:
        if not isinstance(result, CarriedList) or result.slot is not slot:
            raise self._context.error("its body makes a list of its own")
        if result.num_pushed and self._scope.num_trips is None:
            raise self._context.error("a list grows or shrinks, nobody knows how far")
        self._lists[place] = result
        if slot.argument:
            value = result.value or slot.argument
            self._carried.append(_Carried(place, slot.given, slot.argument, value))

    def _restore_stacks(self, values: Mapping[_Place, str]) -> None:
        for name in self._scope.stacks:
            known = self._list_behind(name, values)
            self._context.effects.stacks[name] = known

    def _behind(self, place: int, start: Known, values: Mapping[_Place, str]) -> Known:
        """What a variable is behind the loop."""
        if place in self._counters:
            return self._counters[place]
        if place in self._lists:
            return self._list_behind(place, values)
        return values.get(place, start)

    def _list_behind(self, place: _Place, values: Mapping[_Place, str]) -> AnyList:
        """A list behind the loop: the rows of a value, or entries that are the same."""
        result = self._lists[place]
        start, trips = result.slot.start, self._scope.num_trips or 1
        length = length_of(start) + result.num_pushed * trips
        if length < 0:
            raise self._context.error("it takes more from a list than there is")
        if place in values:
            return self._as_outside(start, StackedList(values[place], length))
        if not result.num_pushed:
            return start
        if not isinstance(start, TensorList):
            raise self._context.error("a list of several loops grows or shrinks")
        return TensorList((start.items + (result.pushed,) * trips)[:length])

    def _as_outside(self, start: AnyList, behind: StackedList) -> AnyList:
        """A list that the loop around carries too remains one of that loop's."""
        if not isinstance(start, CarriedList):
            return behind
        # The loop around counts growth in each of its own trips.
        growth = behind.length - length_of(start)
        return CarriedList(start.slot, behind.value, start.num_pushed + growth)
