"""MadeOp: an operation that a program has just made, as callbacks see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tensorflow.compat.v2 as tf

__all__ = ["MadeOp"]

_FLOATS = (tf.float16, tf.bfloat16, tf.float32)


@dataclass(frozen=True, eq=False)  # tensors do not compare to a bool
class MadeOp:
    """A new operation; `outputs` are what the program would go on with so far."""

    type: str
    name: str
    graph: tf.Graph
    inputs: tuple[tf.Tensor, ...]
    outputs: tuple[tf.Tensor, ...]

    @property
    def has_half_outputs(self) -> bool:
        """Whether something that it gives is in half precision."""
        return any(output.dtype == tf.float16 for output in self.outputs)

    @property
    def float_inputs(self) -> list[tf.Tensor]:
        """The numbers with a fraction among its operands."""
        return [tensor for tensor in self.inputs if tensor.dtype in _FLOATS]

    @property
    def float_outputs(self) -> list[tf.Tensor]:
        """The numbers with a fraction among its results."""
        return [tensor for tensor in self.outputs if tensor.dtype in _FLOATS]

    def giving(self, outputs: Sequence[tf.Tensor]) -> MadeOp:
        """The same operation with other tensors to go on with."""
        return replace(self, outputs=tuple(outputs))
