"""Layers that promise equal values in all replicas."""

from __future__ import annotations

from typing import Any

from tensorflow.python.ipu.ops import cross_replica_ops

from tensorflow_ipu._types import Tensors

from .ipu_layer import IPULayer


class AssumeEqualAcrossReplicas(IPULayer):
    """What passes it has one value in all replicas."""

    def __init__(self, inplace: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inplace = inplace

    def call(self, inputs: Tensors, **kwargs: Any) -> Tensors:
        """The inputs, marked."""
        del kwargs
        return cross_replica_ops.assume_equal_across_replicas(inputs, self.inplace)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "inplace": self.inplace}
