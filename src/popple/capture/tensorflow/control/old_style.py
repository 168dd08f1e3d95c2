"""Old-style control flow: loops made of Enter, Merge and Exit, branches of Switch.

The ops of such a loop lie in the graph like any others and are told apart by the
context TensorFlow keeps for them. A loop is a unit of its own; from outside only its
Enter and Exit ops touch it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from popple.capture.tensorflow.control.loops import LoopToWalk, walk_loop
from popple.capture.tensorflow.control.table import has_ops, num_ops
from popple.capture.tensorflow.control.trips import LoopTensors
from popple.capture.tensorflow.framework import (
    Operation,
    Tensor,
    cond_contexts,
    while_contexts,
)
from popple.capture.tensorflow.known import Known, NotTaken
from popple.capture.tensorflow.order import changes_something, needed_ops
from popple.capture.tensorflow.tags import Tag, full_name
from popple.capture.tensorflow.walk import (
    Call,
    Control,
    Environment,
    Surroundings,
    Walker,
)

_EDGES = frozenset({"LoopCond", "Exit"})


@dataclass(frozen=True)
class _Variable:
    """One variable of a loop, by the ops that carry it round."""

    enter: Operation
    merge: Operation
    switch: Operation
    back: Operation

    @property
    def ops(self) -> set[Operation]:
        return {self.enter, self.merge, self.switch, self.back}


def walk_old_loop(
    walker: Walker,
    context: Any,
    ops: Sequence[Operation],
    found: Environment,
    around: Surroundings,
) -> None:
    """Walk a loop; what leaves it through Exit ops is added to `found`."""
    inside = replace(around, loops=(*around.loops, context))
    # Ops of loops inside have more contexts; these loops are units of the body.
    own = [op for op in ops if len(while_contexts(op)) == len(inside.loops)]
    variables = _variables(own)
    known = _walk_constants(walker, own, variables, found, around)
    left_out = {op for op in own if op.type in _EDGES}
    left_out.update(*(variable.ops for variable in variables))
    body = [op for op in ops if op not in left_out]

    def walk(state: Sequence[Known]) -> Sequence[Known]:
        local = {**found, **_bound(variables, state)}
        walker.walk_ops(body, local, inside)
        return [local.get(id(variable.back.inputs[0])) for variable in variables]

    def decide(state: Sequence[Known]) -> Known:
        local = {**found, **_bound(variables, state)}
        walker.walk_ops(needed_ops(body, [condition.op]), local, inside)
        return local.get(id(condition))

    condition = next(op for op in own if op.type == "LoopCond").inputs[0]
    start = [walker.find(variable.enter.inputs[0], found) for variable in variables]
    loop = LoopToWalk(
        op=condition.op,
        tag=_tag(walker, context, condition.op, around),
        tensors=_tensors(variables, condition, known),
        walk=walk,
        decide=decide,
        num_ops=num_ops(body),
        is_own=has_ops(body, changes_something),
    )
    last = _bound(variables, walk_loop(walker, loop, start))
    for op in own:
        if op.type == "Exit":
            found[id(op.outputs[0])] = last.get(id(_behind_identities(op.inputs[0])))


def _tag(
    walker: Walker, context: Any, condition: Operation, around: Surroundings
) -> Tag:
    """The tag of a loop: that of its condition, with the name of the loop."""
    name = full_name(around.scope, context.name.removesuffix("_context"))
    return replace(walker.tag(condition, around), name=name)


def _behind_identities(tensor: Tensor) -> Tensor:
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def _variables(ops: Sequence[Operation]) -> list[_Variable]:
    """The loop's variables: merges that are fed from outside and from behind."""
    switches = {op.inputs[0].op: op for op in ops if op.type == "Switch"}
    return [
        _Variable(op.inputs[0].op, op, switches[op], op.inputs[1].op)
        for op in ops
        if op.type == "Merge" and op.inputs[1].op.type == "NextIteration"
    ]


def _walk_constants(
    walker: Walker,
    ops: Sequence[Operation],
    variables: Sequence[_Variable],
    found: Environment,
    around: Surroundings,
) -> dict[int, Any]:
    """What enters the loop and stays; those known when compiling, by id."""
    carried = {variable.enter for variable in variables}
    known: dict[int, Any] = {}
    for op in ops:
        if op.type != "Enter" or op in carried:
            continue
        walker.walk_op(op, found, around)
        value = found[id(op.outputs[0])]
        if isinstance(value, np.ndarray):
            known[id(op.outputs[0])] = value
    return known


def _bound(variables: Sequence[_Variable], state: Sequence[Known]) -> Environment:
    """The loop's variables wherever its ops read them."""
    found: Environment = {}
    for variable, known in zip(variables, state, strict=True):
        # Ops of the body read a variable behind any of the three; all are the same
        # value.
        for op in (variable.enter, variable.merge, variable.switch):
            found.update((id(output), known) for output in op.outputs)
    return found


def _tensors(
    variables: Sequence[_Variable], condition: Tensor, known: dict[int, Any]
) -> LoopTensors:
    return LoopTensors(
        condition=condition,
        condition_inputs=[variable.merge.outputs[0] for variable in variables],
        inputs=[variable.switch.outputs[1] for variable in variables],
        results=[variable.back.inputs[0] for variable in variables],
        known=known,
    )


def lower_same(walker: Walker, call: Call) -> Sequence[Known]:
    """Enter, Exit and their like hand on what they are given."""
    return call.inputs[:1]


def lower_switch(walker: Walker, call: Call) -> Sequence[Known]:
    """Both branches are given the tensor."""
    return [call.inputs[0]] * len(call.op.outputs)


def lower_merge(walker: Walker, call: Call) -> Sequence[Known]:
    """What the branch that was walked gave."""
    taken = [known for known in call.inputs if not isinstance(known, NotTaken)]
    computed = next((known for known in taken if isinstance(known, str)), None)
    given = computed or next(iter(taken), NotTaken())
    return [given, *(None,) * (len(call.op.outputs) - 1)]


def without_other_branches(
    ops: Sequence[Operation], found: Environment
) -> list[Operation]:
    """Ops but for those in old-style branches that are not taken.

    Of branches whose choice is not known the one with more ops is taken.
    """
    counts: Counter[tuple[int, int]] = Counter()
    places = {op: [(id(p), b) for p, b in cond_contexts(op)] for op in ops}
    for branches in places.values():
        counts.update(branches)

    def is_taken(predicate: int, branch: int) -> bool:
        known = found.get(predicate)
        if isinstance(known, np.ndarray):
            return bool(known) == bool(branch)
        mine, other = counts[predicate, branch], counts[predicate, 1 - branch]
        # Exactly one side has to be taken, also if both have as many ops.
        return mine > other or (mine == other and branch == 1)

    taken = [op for op in ops if all(is_taken(*place) for place in places[op])]
    for op in set(ops).difference(taken):
        found.update((id(output), NotTaken()) for output in op.outputs)
    return taken


OLD_CONTROL: dict[str, Control] = {
    **dict.fromkeys(("Enter", "Exit", "NextIteration", "LoopCond"), lower_same),
    "Merge": lower_merge,
    "Switch": lower_switch,
}
