"""Layers that change no value, but say something of it to the compiler."""

from __future__ import annotations

from typing import Any

from tensorflow.python.ipu.ops import cross_replica_ops, pipelining_ops

from .ipu_layer import IPULayer


class RecomputationCheckpoint(IPULayer):
    """What passes it is kept where activations are computed again."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """The inputs, marked."""
        del kwargs
        return pipelining_ops.recomputation_checkpoint(inputs, name=self.name)


class AssumeEqualAcrossReplicas(IPULayer):
    """What passes it has one value in all replicas."""

    def __init__(self, inplace: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inplace = inplace

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """The inputs, marked."""
        del kwargs
        return cross_replica_ops.assume_equal_across_replicas(inputs, self.inplace)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "inplace": self.inplace}
