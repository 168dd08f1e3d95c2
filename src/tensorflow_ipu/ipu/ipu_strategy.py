"""IPUStrategy: the scope in which variables and Keras models belong to an IPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.distribute import (
    device_util,
    distribute_lib,
    input_lib,
    reduce_util,
)
from tensorflow.python.eager.polymorphic_function import (
    concrete_function,
    polymorphic_function,
)
from tensorflow.python.framework import device as tf_device
from tensorflow.python.framework import ops
from tensorflow.python.trackable import base as trackable

from tensorflow_ipu._types import DTypeLike, Function, Returned, Tensors

from . import _modelling, _patches, keras_extensions
from ._former_run import FormerRun
from ._programs import functions
from .ops import cross_replica_ops


class IPUStrategyV1(
    # The first is what its methods are; programs ask whether it is the second, which
    # is what TensorFlow 2 calls `tf.distribute.Strategy`.
    distribute_lib.StrategyV1,
    distribute_lib.Strategy,
    FormerRun,
    keras_extensions.KerasExtensions,
):
    """Puts variables and Keras models made in its scope on the IPUs of one device.

    `run` executes a `tf.function` as an IPU program. The strategy counts one replica:
    replication happens inside the program.
    """

    def __init__(
        self,
        ipu_device: str = "/device:IPU:0",
        cpu_device: str = "/device:CPU:0",
        enable_dataset_iterators: bool = True,
        enable_keras_extensions: bool = True,
    ) -> None:
        super().__init__(IPUExtendedV1(self, ipu_device, cpu_device))
        keras_extensions.KerasExtensions.__init__(
            self, enable_dataset_iterators, enable_keras_extensions
        )

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Any = None,
    ) -> Returned:
        """Run `fn` on the device; what it returns, from one replica."""
        if tf.executing_eagerly() and not _is_traceable(fn):
            raise ValueError(
                f"{type(self).__name__}.run(fn, ...) does not support eager execution:"
                " make `fn` a tf.function, or call `run` inside one."
            )
        return super().run(fn, args, kwargs, options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extended.non_slot_devices(None)!r})"

    @property
    def _device_ordinal(self) -> int:
        device = tf_device.DeviceSpec.from_string(self.extended.non_slot_devices(None))
        return device.device_index or 0

    def __popple__(self) -> Any:
        """The model of the program that ran last, for `popple.modelled`."""
        return _modelling.modelled(self)

    @property
    def supports_loss_scaling(self) -> bool:
        """Whether Keras may scale losses under this strategy."""
        return True


IPUStrategy = IPUStrategyV1


class IPUExtendedV1(distribute_lib.StrategyExtendedV1):
    """What TensorFlow asks of a strategy."""

    def __init__(
        self,
        container_strategy: tf.distribute.Strategy,
        ipu_device: str,
        cpu_device: str,
    ) -> None:
        super().__init__(container_strategy)
        self._ipu_device = ipu_device
        self._cpu_device = cpu_device
        self._input_workers = input_lib.InputWorkers([("", [cpu_device])])

    def _create_variable(
        self, next_creator: Any, *args: Any, **kwargs: Any
    ) -> tf.Variable:
        given = kwargs["initial_value"]
        kwargs["initial_value"] = lambda: self._initial_value(
            given, kwargs.get("dtype")
        )
        with tf.device(self._ipu_device):
            variable = next_creator(*args, **kwargs)
        device = device_util.canonicalize(self._ipu_device)
        # TensorFlow would answer with the CPU, where soft placement has put it.
        setattr(variable, _patches.VARIABLE_DEVICE, device)
        return variable

    def _initial_value(self, value: Tensors, dtype: DTypeLike) -> tf.Tensor:
        """A variable's first value, made on the host."""
        with tf.device(self._cpu_device):
            value = value() if callable(value) else value
            if isinstance(value, trackable.CheckpointInitialValue):
                value = value.wrapped_value
            return tf.convert_to_tensor(value, dtype=dtype)

    def _call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Returned:
        ordinal = self._container_strategy()._device_ordinal
        with self._replica():
            return functions.run_function(fn, args, kwargs, ordinal)

    def _prepare(
        self, fn: Callable[..., Any], args: Sequence[Any], num_shards: int
    ) -> Callable[[Sequence[Any]], Any]:
        """Trace `fn` for `args`; what runs it, again and again, on such tensors."""
        ordinal = self._container_strategy()._device_ordinal
        with self._replica():
            return functions.prepare(fn, args, ordinal, num_shards)

    @contextlib.contextmanager
    def _replica(self) -> Iterator[None]:
        """What is traced inside is a program of this strategy."""
        owner = self._container_strategy()
        context = distribute_lib.ReplicaContext(owner, replica_id_in_sync_group=0)
        with context, tf.device(self._ipu_device), _modelling.owned_by(owner):
            yield

    def _reduce_to(
        self,
        reduce_op: tf.distribute.ReduceOp,
        value: Tensors,
        destinations: Any,
        options: Any,
    ) -> tf.Tensor:
        if not is_on_ipu():
            return value
        if reduce_op == reduce_util.ReduceOp.SUM:
            return cross_replica_ops.cross_replica_sum(value)
        if reduce_op == reduce_util.ReduceOp.MEAN:
            return cross_replica_ops.cross_replica_mean(value)
        raise ValueError(f"Unsupported reduce op: {reduce_op}. Use SUM or MEAN.")

    def _update(
        self, var: tf.Variable, fn: Function, args: Any, kwargs: Any, group: bool
    ) -> Any:
        return self._update_non_slot(var, fn, (var, *args), kwargs, group)

    def _update_non_slot(
        self, colocate_with: Any, fn: Function, args: Any, kwargs: Any, group: bool
    ) -> Any:
        with distribute_lib.UpdateContext(colocate_with):
            result = fn(*args, **kwargs)
        return result if group else tf.nest.map_structure(self._local_results, result)

    def _local_results(self, distributed_value: Any) -> tuple[Any, ...]:
        return (distributed_value,)

    def value_container(self, value: Tensors) -> Any:
        """The container of a value: itself, as there is one of each."""
        return value

    def non_slot_devices(self, var_list: Sequence[tf.Variable] | None) -> str:
        """Where variables that are not slots live."""
        return self._ipu_device

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """Make variables where another one is."""
        # The public name would warn, of a line of ours.
        return ops.colocate_with(colocate_with_variable)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in this strategy's scope."""
        return v._distribute_strategy in (self._container_strategy(), None)

    def _experimental_distribute_dataset(
        self, dataset: tf.data.Dataset, options: Any
    ) -> tf.data.Dataset:
        # The raw one: a program reads it through an infeed.
        return dataset

    def _distribute_datasets_from_function(
        self, dataset_fn: Any, options: Any
    ) -> tf.data.Dataset:
        return dataset_fn(distribute_lib.InputContext())

    @property
    def worker_devices(self) -> tuple[str, ...]:
        return (self._ipu_device,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        return (self._ipu_device,)

    @property
    def _num_replicas_in_sync(self) -> int:
        return 1

    def _get_local_replica_id(self, replica_id_in_sync_group: int) -> int:
        return replica_id_in_sync_group

    def _in_multi_worker_mode(self) -> bool:
        return False

    def _global_batch_size(self) -> bool:
        return True


def _is_traceable(function: Any) -> bool:
    return isinstance(
        function,
        polymorphic_function.Function | concrete_function.ConcreteFunction,
    )


def is_on_ipu() -> bool:
    """Whether what is built now is put on an IPU."""
    device = tf_device.DeviceSpec.from_string(device_util.current())
    return device.device_type == "IPU"
