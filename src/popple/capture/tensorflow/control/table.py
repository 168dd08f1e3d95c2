"""Calls, loops and branches: what the walker does when it meets them.

Calls are walked into. Loops (`loops`) and branches (`branches`) become ops that run
functions, unless what they will do is known when compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.control.branches import walk_branch
from popple.capture.tensorflow.control.loops import LoopToWalk, walk_loop
from popple.capture.tensorflow.control.trips import LoopTensors
from popple.capture.tensorflow.framework import (
    Array,
    Operation,
    TensorFlowGraph,
    branch_graphs,
    called_graph,
    find_attr,
    loop_graphs,
    type_of,
)
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.forms import lower_generic
from popple.capture.tensorflow.order import changes_something
from popple.capture.tensorflow.recurrent import lower_recurrent
from popple.capture.tensorflow.walk import Call, Control, Walker
from popple.graph import Phase
from popple.marks import SCHEDULE

_BACKWARD = "__backward_"
_UPDATES = ("ResourceApply", "ResourceSparseApply")
_CALLS = ("PartitionedCall", "StatefulPartitionedCall", "RemoteCall")
_LOOPS = ("While", "StatelessWhile")
_IFS = ("If", "StatelessIf")
_CASES = ("Case", "StatelessCase")


def lower_call(walker: Walker, call: Call) -> Sequence[Known]:
    """A function, in place of its call; without a body it is like any unknown op."""
    name, graph = called_graph(call.op)
    tag = walker.tag(call.op, call.around)
    if graph is None:
        tag = replace(tag, phase=tag.phase or Phase.FORWARD)
        context = OpContext(walker.builder, walker.effects, call.op, tag, call.inputs)
        return lower_generic(context)
    if (layer := lower_recurrent(walker, call, name, graph)) is not None:
        return layer
    around = call.around.inside(tag)
    if name.startswith(_BACKWARD):
        around = replace(around, phase=around.phase or Phase.BACKWARD)
    return walker.walk_graph(graph, call.inputs, around)


def lower_branches(walker: Walker, call: Call) -> Sequence[Known]:
    """If and Case: the side that is taken if that is known, else all of them."""
    graphs = branch_graphs(call.op)
    tag = walker.tag(call.op, call.around)
    around = call.around.inside(tag)
    all_ops = [op for graph in graphs for op in graph.get_operations()]
    if has_ops(all_ops, lambda op: type_of(op).startswith(_UPDATES)):
        # A branch around an optimiser (loss scaling, accumulation) tells nothing
        # itself.
        around = replace(around, phase=around.phase or Phase.UPDATE)
    sides = [
        partial(walker.walk_graph, graph, call.inputs[1:], around) for graph in graphs
    ]
    if isinstance(call.inputs[0], np.ndarray):
        return sides[_choice(call, call.inputs[0], len(sides))]()
    sizes = [num_ops(graph.get_operations()) for graph in graphs]
    dearest = sizes.index(max(sizes))
    # A function only gives results: what variables become, it cannot say.
    if has_ops(all_ops, changes_something):
        return sides[dearest]()
    return walk_branch(walker, call, tag, sides, dearest)


def _choice(call: Call, choice: Array, num_sides: int) -> int:
    number = int(choice.reshape(()))
    if call.op.type in _IFS:
        return 0 if number else 1  # the side to take if true comes first
    # As TensorFlow's Case does with a number out of range.
    return number if 0 <= number < num_sides else num_sides - 1


def lower_loop(walker: Walker, call: Call) -> Sequence[Known]:
    """While: its condition and its body are functions."""
    condition, body = loop_graphs(call.op)
    tag = walker.tag(call.op, call.around)
    around = call.around.inside(tag)
    ops = body.get_operations()
    is_pipeline = find_attr(call.op, SCHEDULE) is not None
    loop = LoopToWalk(
        op=call.op,
        tag=tag,
        tensors=LoopTensors(
            condition.outputs[0], condition.inputs, body.inputs, body.outputs
        ),
        walk=lambda state: walker.walk_graph(body, state, around),
        decide=lambda state: walker.walk_graph(condition, state, around)[0],
        num_ops=num_ops(ops),
        is_own=is_pipeline or has_ops(ops, changes_something),
    )
    return walk_loop(walker, loop, call.inputs)


def bodies(op: Operation) -> Sequence[TensorFlowGraph]:
    """The functions that an op may run."""
    if op.type in _CALLS:
        _, graph = called_graph(op)
        return [] if graph is None else [graph]
    if op.type in _LOOPS:
        return [loop_graphs(op)[1]]
    return branch_graphs(op) if op.type in (*_IFS, *_CASES) else []


def num_ops(ops: Iterable[Operation]) -> int:
    """How many ops these are, with those of the functions they run."""
    return sum(
        1 + sum(num_ops(body.get_operations()) for body in bodies(op)) for op in ops
    )


def has_ops(ops: Iterable[Operation], is_one: Callable[[Operation], bool]) -> bool:
    """Whether one of these ops, or one in a function they run, is of a kind."""
    for op in ops:
        inner = bodies(op)
        if any(has_ops(body.get_operations(), is_one) for body in inner):
            return True
        if not inner and is_one(op):
            return True
    return False


CONTROL: dict[str, Control] = {
    **dict.fromkeys(_CALLS, lower_call),
    **dict.fromkeys((*_IFS, *_CASES), lower_branches),
    **dict.fromkeys(_LOOPS, lower_loop),
}
