"""Units of ops that are walked together: which there are, and who walks them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from popple.capture.tensorflow.framework import Operation, while_contexts
from popple.capture.tensorflow.old_control import (
    walk_old_loop,
    without_other_branches,
)
from popple.capture.tensorflow.regions import walk_region
from popple.capture.tensorflow.walk import Environment, Surroundings, Walker
from popple.marks import REGION

# Ops that may be made while a region is built but are no part of it.
_OUTSIDE = frozenset({"Const", "Placeholder"})


class MarkedUnits:
    """Regions by their attribute, old-style loops by TensorFlow's contexts."""

    def key_of(self, op: Operation, around: Surroundings) -> Hashable:
        """The label of the region, or the context of the loop, that an op is in."""
        contexts = while_contexts(op)
        if len(contexts) > len(around.loops):
            return contexts[len(around.loops)]
        if op.type in _OUTSIDE:
            return None
        attrs = op.node_def.attr
        return attrs[REGION].s.decode() if REGION in attrs else None

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
        """Walk a region or a loop."""
        if isinstance(key, str):
            walk_region(walker, key, ops, found, around)
        else:
            walk_old_loop(walker, key, ops, found, around)
