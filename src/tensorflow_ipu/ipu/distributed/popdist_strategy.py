"""PopDistStrategy: an IPUStrategy whose replicas may be spread over instances.

TensorFlow is told the number of all replicas, so losses are scaled by it and gradients
are summed over the replicas when they are applied. Variables start with the value that
they have in the first instance.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.distribute import distribute_lib, values

import popdist
from tensorflow_ipu._types import DTypeLike, Tensors

from .. import _modelling, keras_extensions
from .._former_run import FormerRun
from ..ipu_strategy import IPUExtendedV1, is_on_ipu
from . import host_collective_ops
from ._instances import check_joined


class PopDistStrategy(
    distribute_lib.StrategyV1,
    distribute_lib.Strategy,
    FormerRun,
    keras_extensions.KerasExtensions,
):
    """Puts variables and Keras models on the IPUs of this instance."""

    def __init__(
        self,
        ipu_device: str = "/device:IPU:0",
        add_ipu_cross_replica_reductions: bool = True,
        enable_dataset_iterators: bool = True,
        enable_keras_extensions: bool = True,
    ) -> None:
        popdist.init()
        check_joined("PopDistStrategy")
        super().__init__(
            self._make_extended(ipu_device, add_ipu_cross_replica_reductions)
        )
        keras_extensions.KerasExtensions.__init__(
            self, enable_dataset_iterators, enable_keras_extensions
        )

    def _make_extended(self, ipu_device: str, reduces: bool) -> PopDistExtendedV1:
        return PopDistExtendedV1(self, None, ipu_device, reduces)

    def update_ipu_config(self, config: Any) -> None:
        """Write into a configuration which instance of how many this is."""
        distribution = config.experimental.multi_replica_distribution
        distribution.process_count = popdist.getNumInstances()
        distribution.process_index = popdist.getInstanceIndex()

    def __popple__(self) -> Any:
        """The model of the program that ran last, for `popple.modelled`."""
        return _modelling.modelled(self)

    @property
    def supports_loss_scaling(self) -> bool:
        """Whether Keras may scale losses under this strategy."""
        return True

    @property
    def _device_ordinal(self) -> int:
        device = tf.DeviceSpec.from_string(self.extended.non_slot_devices(None))
        return device.device_index or 0


class PopDistExtendedV1(IPUExtendedV1):
    """What TensorFlow asks of the strategy."""

    def __init__(
        self,
        container_strategy: tf.distribute.Strategy,
        cluster_resolver: tf.distribute.cluster_resolver.ClusterResolver,
        ipu_device: str,
        add_ipu_cross_replica_reductions: bool,
    ) -> None:
        del cluster_resolver  # instances are PopDist's
        super().__init__(container_strategy, ipu_device, "/device:CPU:0")
        self._add_ipu_cross_replica_reductions = add_ipu_cross_replica_reductions

    def _reduce_to(
        self,
        reduce_op: tf.distribute.ReduceOp,
        value: Tensors,
        destinations: Any,
        options: Any,
    ) -> tf.Tensor:
        if not is_on_ipu():
            return over_instances(value, reduce_op)
        if not self._add_ipu_cross_replica_reductions:
            return value
        return super()._reduce_to(reduce_op, value, destinations, options)

    def _initial_value(self, value: Tensors, dtype: DTypeLike) -> tf.Tensor:
        """A variable's first value: that of the first instance."""
        own = super()._initial_value(value, dtype)
        if popdist.getNumInstances() == 1:
            return own
        with tf.device(self._cpu_device):
            return host_collective_ops.broadcast(own)

    def read_var(self, var: tf.Variable) -> tf.Tensor:
        """The value of a variable."""
        return var.read_value()

    @property
    def _num_replicas_in_sync(self) -> int:
        return popdist.getNumTotalReplicas()


def over_instances(value: Tensors, reduce_op: tf.distribute.ReduceOp) -> Tensors:
    """Values reduced on the hosts; one instance keeps its own."""
    if popdist.getNumInstances() == 1:
        return value
    return tf.nest.map_structure(
        lambda each: host_collective_ops.allreduce(each, reduce_op), value
    )


class IPUDistributedVariable(values.DistributedVariable):
    """A variable with a copy in each instance."""


class IPUMirroredVariable(values.MirroredVariable):
    """A variable whose copies are kept equal."""


class IPUSyncOnReadVariable(values.SyncOnReadVariable):
    """A variable whose copies are combined when it is read."""


class IPUOnWritePolicy(values.OnWritePolicy):
    """Keeps copies equal when they are written."""


class IPUOnReadPolicy(values.OnReadPolicy):
    """Combines copies when they are read."""
