"""Units of ops that are walked together: which there are, and who walks them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from popple.capture.tensorflow.control.old_style import (
    walk_old_loop,
    without_other_branches,
)
from popple.capture.tensorflow.control.outlined import OutlinedCall, walk_outlined
from popple.capture.tensorflow.framework import Operation, while_contexts
from popple.capture.tensorflow.regions import walk_region
from popple.capture.tensorflow.walk import Environment, Surroundings, Walker
from popple.marks import OUTLINED, REGION

# Ops that may be made while a region is built but are no part of it.
_OUTSIDE = frozenset({"Const", "Placeholder"})


class MarkedUnits:
    """Regions and outlined calls by attributes, loops by TensorFlow's contexts."""

    def keys_of(
        self, ops: Sequence[Operation], around: Surroundings
    ) -> Callable[[Operation], Hashable]:
        """Tells the call, the region (its label) or the loop that an op is in.

        An outlined function with an old-style loop inside is no unit: its loop is one.
        """
        depth = len(around.outlined)
        calls = {op: labels[depth] for op in ops if len(labels := _labels(op)) > depth}
        broken = {calls[op] for op in calls if _loop_of(op, around) is not None}

        def key(op: Operation) -> Hashable:
            if (loop := _loop_of(op, around)) is not None:
                return loop
            if op in calls and calls[op] not in broken:
                return OutlinedCall(calls[op])
            if op.type in _OUTSIDE:
                return None
            attrs = op.node_def.attr
            return attrs[REGION].s.decode() if REGION in attrs else None

        return key

    def taken(
        self, ops: Sequence[Operation], found: Environment
    ) -> Sequence[Operation]:
        """Ops but for those in old-style branches that are not taken."""
        if all(op._get_control_flow_context() is None for op in ops):
            return ops
        return without_other_branches(ops, found)

    def walk(
        self,
        walker: Walker,
        key: Hashable,
        ops: Sequence[Operation],
        found: Environment,
        around: Surroundings,
    ) -> None:
        """Walk a region, an outlined call or a loop."""
        if isinstance(key, OutlinedCall):
            walk_outlined(walker, key, ops, found, around)
        elif isinstance(key, str):
            walk_region(walker, key, ops, found, around)
        else:
            walk_old_loop(walker, key, ops, found, around)


def _loop_of(op: Operation, around: Surroundings) -> Any:
    """The context of the loop that an op is in besides those around all ops."""
    contexts = while_contexts(op)
    depth = len(around.loops)
    return contexts[depth] if len(contexts) > depth else None


def _labels(op: Operation) -> list[str]:
    """The outlined calls that an op was made in, outermost first."""
    attrs = op.node_def.attr
    return attrs[OUTLINED].s.decode().split(";") if OUTLINED in attrs else []
