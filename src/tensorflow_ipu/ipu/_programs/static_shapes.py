"""Programs for the IPU have static shapes: results as large as values say are refused.

A dimension that is unknown when a graph is built is known when it is compiled, anew for
every shape that comes. How many elements of a tensor are true is known to nobody then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v2 as tf

from .. import _errors
from .outside_compilation import ATTRIBUTE

__all__ = ["check"]

# Not `Unique`: TensorFlow's optimisers add up the rows of sparse gradients with it.
_AS_LARGE_AS_VALUES_SAY = frozenset(
    {
        "DynamicPartition",
        "ListDiff",
        "NonMaxSuppression",
        "NonMaxSuppressionV2",
        "NonMaxSuppressionV3",
        "Where",
    }
)


def check(operations: Iterable[Any]) -> None:
    """Refuse operations on the device whose results have no shape before they run."""
    for op in operations:
        if op.type in _AS_LARGE_AS_VALUES_SAY and ATTRIBUTE not in op.node_def.attr:
            raise _errors.error(
                tf.errors.InvalidArgumentError,
                f"The shape of what {op.type} ('{op.name}') makes depends on values, "
                "and all shapes of a program for the IPU are static, known when it is "
                "compiled. Keep the shape and mask what is not wanted (tf.where with "
                "three arguments), or compute it on the host, in an "
                "outside_compilation_scope.",
            )
