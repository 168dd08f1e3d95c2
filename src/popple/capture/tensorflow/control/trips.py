"""How often a loop runs: its condition and counters, evaluated when compiling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from popple.capture.tensorflow.constants import fold
from popple.capture.tensorflow.framework import Array, Tensor, constant_array
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.types import is_on_machine

_SAME = frozenset({"Identity", "EnsureShape", "LoopCond"})
# Beyond this a loop never ends as far as anybody waits for it.
_MAX_TRIPS = 1 << 40
# Uneven counters are evaluated trip by trip, which takes time when compiling.
_MAX_STEPS = 10_000

Counters = Mapping[int, Array]
"""Loop variables by their position, as far as they are known."""


@dataclass(frozen=True)
class LoopTensors:
    """Where a loop's variables are: in its condition, and before and after its body.

    `known` are tensors from outside the loop that are known when compiling, by id.
    """

    condition: Tensor
    condition_inputs: Sequence[Tensor]
    inputs: Sequence[Tensor]
    results: Sequence[Tensor]
    known: Mapping[int, Array] = field(default_factory=dict[int, Any])

    def is_passed_through(self, position: int) -> bool:
        """Whether a variable comes out of the body as it went in."""
        tensor = self.results[position]
        while tensor.op.type in _SAME:
            tensor = tensor.op.inputs[0]
        return tensor is self.inputs[position]

    def last_counters(self, start: Sequence[Known], num_trips: int) -> dict[int, Array]:
        """Numbers that grow by as much in every trip, as they are in the end."""
        fixed = {
            id(self.inputs[position]): known
            for position, known in enumerate(start)
            if isinstance(known, np.ndarray) and self.is_passed_through(position)
        }
        found: dict[int, Array] = {}
        for position, first in enumerate(start):
            if not isinstance(first, np.ndarray) or not _is_counter(first):
                continue
            second, third = self._two_more(position, first, fixed)
            if third is not None and second is not None:
                step = int(second) - int(first)
                if int(third) - int(second) == step:
                    last = int(first) + num_trips * step
                    found[position] = np.asarray(last, first.dtype)
        return found

    def _two_more(
        self, position: int, first: Array, fixed: Mapping[int, Array]
    ) -> tuple[Array | None, Array | None]:
        """A variable after one trip and after two, if nothing else decides."""
        known = {**self.known, **fixed}
        place, result = id(self.inputs[position]), self.results[position]
        second = _value(result, {**known, place: first})
        if second is None:
            return None, None
        return second, _value(result, {**known, place: second})

    def count(self, start: Sequence[Known]) -> int | None:
        """The number of trips from these values on; None if it cannot be known."""
        deciding = self._find_deciding()
        first = {i: k for i in deciding if isinstance(k := start[i], np.ndarray)}
        if len(first) < len(deciding):
            return None
        if not deciding:  # the condition holds always or never
            return 0 if self._runs(first) is False else None
        # Two trips show whether all counters go in even steps. If so any trip can be
        # computed directly, and the number of trips is found by bisection, however
        # large.
        second = self._next(first)
        third = None if second is None else self._next(second)
        if second is None or third is None:
            return None
        steps = {i: second[i] - first[i] for i in first if first[i].dtype != bool}
        is_even = all(np.all(third[i] - second[i] == steps[i]) for i in steps)
        if not is_even or len(steps) < len(first):
            return self._count_one_by_one(first)
        return count_trips(lambda trip: self._runs(_advanced(first, steps, trip)))

    def _count_one_by_one(self, counters: Counters) -> int | None:
        for trip in range(_MAX_STEPS):
            if not self._runs(counters):
                return trip
            following = self._next(counters)
            if following is None:
                return None
            counters = following
        return None

    def _find_deciding(self) -> list[int]:
        """Positions of the variables that the condition depends on."""
        found: set[int] = set()
        waiting = _positions(self.condition_inputs, self.condition)
        while waiting:
            position = waiting.pop()
            if position not in found:
                found.add(position)
                waiting |= _positions(self.inputs, self.results[position])
        return sorted(found)

    def _runs(self, counters: Counters) -> bool | None:
        found = {id(self.condition_inputs[i]): k for i, k in counters.items()}
        result = _value(self.condition, {**self.known, **found})
        return None if result is None else bool(result)

    def _next(self, counters: Counters) -> dict[int, Array] | None:
        found = {id(self.inputs[i]): known for i, known in counters.items()}
        bound = {**self.known, **found}
        results = {i: _value(self.results[i], bound) for i in counters}
        known = {i: result for i, result in results.items() if result is not None}
        return known if len(known) == len(results) else None


def _is_counter(array: Array) -> bool:
    return array.size == 1 and np.issubdtype(array.dtype, np.integer)


def _advanced(first: Counters, steps: Counters, trip: int) -> dict[int, Array]:
    """Counters after so many trips, wide enough for any number of them."""
    return {
        # Trips are doubled in the search: an int32 would overflow and turn the
        # condition.
        i: np.asarray(first[i].astype(np.int64) + trip * steps[i].astype(np.int64))
        for i in first
    }


def count_trips(runs: Callable[[int], bool | None]) -> int | None:
    """The first trip that does not run; `runs` turns from true to false once."""
    if not runs(0):
        return 0 if runs(0) is False else None
    high = 1
    while runs(high):
        high *= 2
        if high > _MAX_TRIPS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if runs(middle) else (low, middle)
    return high


def _positions(inputs: Sequence[Tensor], tensor: Tensor) -> set[int]:
    """Positions of the inputs that a tensor depends on."""
    places = {id(given): position for position, given in enumerate(inputs)}
    found: set[int] = set()
    seen: set[int] = set()
    waiting = [tensor]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if id(current) in places:
            found.add(places[id(current)])
        else:
            waiting += list(current.op.inputs)
    return found


def _value(tensor: Tensor, found: dict[int, Array]) -> Array | None:
    if id(tensor) in found:
        return found[id(tensor)]
    op = tensor.op
    if op.type == "Const":
        return constant_array(op) if is_on_machine(tensor.dtype) else None
    inputs: list[Array] = []
    for source in op.inputs:
        known = _value(source, found)
        if known is None:
            return None
        inputs.append(known)
    if op.type in _SAME:
        return inputs[0]
    results = fold(op, inputs)
    return None if results is None else results[tensor.value_index]
