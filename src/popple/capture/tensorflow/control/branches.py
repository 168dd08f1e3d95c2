"""Branches: If and Case ops, of which one side is taken in a run.

If the choice is known when compiling, that side is walked in place of the op. Else each
side becomes a function and one op runs the one that is chosen. Sides that change
something beyond their results (variables, feeds), and sides that do not fit together,
cannot be functions: then the dearer one is walked in place of the op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.control.functions import (
    captured,
    close_function,
    function_of,
    is_number,
    placed,
    prune,
    result_name,
)
from popple.capture.tensorflow.known import Known, TensorList
from popple.capture.tensorflow.tags import Tag
from popple.capture.tensorflow.walk import Call, Walker
from popple.errors import CaptureError
from popple.graph import DType, TensorType

_SELECTORS = frozenset({DType.BOOL, DType.I32, DType.U32})

Side = Callable[[], Sequence[Known]]
"""Walks one side; what the op's results are there."""


@dataclass(frozen=True)
class _Walked:
    """A side as a function in the making: its results, and the values among them."""

    body: GraphBuilder
    results: tuple[Known, ...]


def walk_branch(
    walker: Walker, call: Call, tag: Tag, sides: Sequence[Side], dearest: int
) -> Sequence[Known]:
    """A branch op with every side as a function; or the dearest side, in its place."""
    num_remarks, stacks = len(walker.remarks), dict(walker.effects.stacks)
    try:
        return _walk_as_functions(walker, call, tag, sides)
    except CaptureError as error:
        # What the attempt noted is undone.
        del walker.remarks[num_remarks:]
        walker.effects.stacks = stacks
        walker.remarks.append(
            f"Of the branch {tag.name} the dearer side is counted: {error.what}"
        )
    return sides[dearest]()


def _walk_as_functions(
    walker: Walker, call: Call, tag: Tag, sides: Sequence[Side]
) -> Sequence[Known]:
    phase = tag.phase or walker.phase_behind(call.op, call.inputs)
    tag = replace(tag, phase=phase)
    context = OpContext(walker.builder, walker.effects, call.op, tag, call.inputs)
    selector = context.name(0)
    _check_selector(context, context.type_of(selector))
    walked: list[_Walked] = []
    for side in sides:
        stacks = dict(walker.effects.stacks)
        with function_of(walker) as body:
            walked.append(_Walked(body, tuple(side())))
        # The backward pass would pop from a stack that was pushed on one side only, and
        # on which one is not known when compiling.
        if walker.effects.stacks != stacks:
            raise context.error("a side keeps something for the backward pass")
    merged = _Merged(context, walked)
    shapes = [merged.shape(place) for place in range(len(walked[0].results))]
    return merged.emit(selector, shapes)


def _check_selector(context: OpContext, kind: TensorType) -> None:
    if kind.num_elements != 1 or kind.dtype not in _SELECTORS:
        raise context.error("its choice is not one bool or integer")


class _Merged:
    """The sides of a branch, brought to results of the same types.

    A result is a value that each side gives, something that is the same on all sides,
    or a list of values that some sides leave empty: they give zeros then.
    """

    def __init__(self, context: OpContext, sides: Sequence[_Walked]) -> None:
        self._context = context
        self._sides = sides
        self._outputs: list[list[str]] = [[] for _ in sides]

    def shape(self, place: int) -> Known | _Taken | tuple[_Taken, ...]:
        """What a result is: the same on all sides, one output, or several."""
        known = [side.results[place] for side in self._sides]
        if all(_is_same(each, known[0]) for each in known):
            first = known[0]
            # The same name in two bodies is two values; only one from around is the
            # same on all sides and needs no output.
            if not isinstance(first, str) or self._is_from_around(first):
                return first
        if all(map(is_number, known)):
            return self._output(known)
        lists = [each for each in known if isinstance(each, TensorList)]
        if len(lists) < len(known):
            raise self._context.error("its sides give results of different kinds")
        length = max(each.length for each in lists)
        rows = [[_item(each, i) for each in lists] for i in range(length)]
        return tuple(self._output(row) for row in rows)

    def emit(
        self,
        selector: str,
        shapes: Sequence[Known | _Taken | tuple[_Taken, ...]],
    ) -> list[Known]:
        """Append the op; what its results are."""
        bodies = [side.body for side in self._sides]
        context = placed(self._context, bodies)
        given: dict[str, None] = {}
        for body, outputs in zip(bodies, self._outputs, strict=True):
            prune(body, outputs)
            # One op runs either side, so all sides take the same arguments: those of
            # any side.
            given.update(dict.fromkeys(captured(body, outputs)))
        names = tuple(
            close_function(context, body, list(given), outputs, context.builder)
            for body, outputs in zip(bodies, self._outputs, strict=True)
        )
        types = [bodies[0].type_of(name) for name in self._outputs[0]]
        made: Sequence[str] = ()
        # Sides that compute nothing leave no op; their results are known without it.
        if types:
            attrs = {"functions": names}
            made = context.emit("branch", [selector, *given], types, attrs=attrs)
        return [_filled_in(shape, made) for shape in shapes]

    def _output(self, known: Sequence[Known]) -> _Taken:
        """One more output of the op; sides that give nothing give zeros."""
        names = [
            None if each is None else self._named(side, each)
            for side, each in zip(self._sides, known, strict=True)
        ]
        types = {
            side.body.type_of(name)
            for side, name in zip(self._sides, names, strict=True)
            if name is not None
        }
        if len(types) != 1:
            raise self._context.error("its sides give results of different shapes")
        (kind,) = types
        for side, name, outputs in zip(self._sides, names, self._outputs, strict=True):
            outputs.append(name or self._zeros(side, kind))
        return _Taken(len(self._outputs[0]) - 1)

    def _named(self, side: _Walked, known: Known) -> str:
        if not is_number(known):
            raise self._context.error("a side gives something that is no number")
        return result_name(side.body, known, f"{self._context.tag.name}.result")

    def _zeros(self, side: _Walked, kind: TensorType) -> str:
        inside = replace(self._context, builder=side.body)
        return inside.emit_one("fill", [], kind, suffix=".nothing")

    def _is_from_around(self, name: str) -> bool:
        return all(name not in side.body.values for side in self._sides)


@dataclass(frozen=True)
class _Taken:
    """A result that is an output of the op, by its number."""

    number: int


def _filled_in(
    shape: Known | _Taken | tuple[_Taken, ...], made: Sequence[str]
) -> Known:
    if isinstance(shape, _Taken):
        return made[shape.number]
    if isinstance(shape, tuple):
        return TensorList(tuple(made[each.number] for each in shape))
    return shape


def _is_same(known: Known, other: Known) -> bool:
    if isinstance(known, np.ndarray) or isinstance(other, np.ndarray):
        is_both = isinstance(known, np.ndarray) and isinstance(other, np.ndarray)
        # `==` of arrays has no single answer, and NumPy calls 1 and 1.0 equal.
        return is_both and known.dtype == other.dtype and np.array_equal(known, other)
    return known == other


def _item(known: TensorList, index: int) -> Known:
    return known.items[index] if index < known.length else None
