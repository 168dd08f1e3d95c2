"""IPUHorovodStrategyV1: what `PopDistStrategy` took the place of.

It adds up gradients on the hosts, between the processes of a program; the IPUs of one
process are no concern of it.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

import popdist
from tensorflow_ipu._types import Tensors

from .popdist_strategy import PopDistExtendedV1, PopDistStrategy, over_instances

__all__ = ["IPUHorovodExtendedV1", "IPUHorovodStrategyV1"]


class IPUHorovodExtendedV1(PopDistExtendedV1):
    """What TensorFlow asks of the strategy."""

    def _reduce_to(
        self,
        reduce_op: tf.distribute.ReduceOp,
        value: Tensors,
        destinations: Any,
        options: Any,
    ) -> Tensors:
        return over_instances(value, reduce_op)

    @property
    def _num_replicas_in_sync(self) -> int:
        return popdist.getNumInstances()


class IPUHorovodStrategyV1(PopDistStrategy):
    """Puts variables on the IPUs of this process.

    `variables_on_host` changes no value: here all variables are on the host.
    """

    def __init__(
        self, ipu_device: str = "/device:IPU:0", variables_on_host: bool = False
    ) -> None:
        super().__init__(ipu_device, add_ipu_cross_replica_reductions=False)

    def _make_extended(self, ipu_device: str, reduces: bool) -> IPUHorovodExtendedV1:
        return IPUHorovodExtendedV1(self, None, ipu_device, reduces)
