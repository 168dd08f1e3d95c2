"""Layers that say what is kept where activations are computed again."""

from __future__ import annotations

from typing import Any

from tensorflow.python.ipu.ops import pipelining_ops

from tensorflow_ipu._types import Tensors

from .ipu_layer import IPULayer


class RecomputationCheckpoint(IPULayer):
    """What passes it is kept where activations are computed again."""

    def call(self, inputs: Tensors, **kwargs: Any) -> Tensors:
        """The inputs, marked."""
        del kwargs
        return pipelining_ops.recomputation_checkpoint(inputs, name=self.name)
