"""Raw operators about the program itself: replicas, accumulators, markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu.ops import control_flow_ops, internal_ops, replication_ops

from popple.engine.tensorflow import replicas
from tensorflow_ipu._types import ShapeLike

from . import _absent

Tensor = Any

ipu_fifo = internal_ops.fifo
ipu_remap = internal_ops.remap
ipu_remap_deduce = internal_ops.remap_deduce
replication_index = replication_ops.replication_index


def ipu_replication_factor(name: str | None = None) -> Tensor:
    """Number of replicas."""
    return tf.constant(replicas.num_replicas(), tf.int32, name=name)


def ipu_replication_normalise(input: Tensor, name: str | None = None) -> Tensor:
    """The tensor divided by the number of replicas."""
    count = tf.cast(replicas.num_replicas(), tf.convert_to_tensor(input).dtype)
    return tf.divide(input, count, name=name)


def ipu_print_tensor(input: Tensor, tensor_name: str = "", name: Any = None) -> Any:
    """Print a tensor when the operator runs."""
    return internal_ops.print_tensor(input, tensor_name)


def ipu_barrier(
    inputs: Sequence[Tensor],
    insert_barrier_for_gradients: bool = False,
    name: str | None = None,
) -> Any:
    """The inputs, none of them before all of them are there."""
    return control_flow_ops.barrier(inputs, insert_barrier_for_gradients, name)


def device_sync(name: str | None = None) -> Any:
    """Wait for the device; what runs before this has run."""
    return tf.no_op(name=name)


def gradient_accumulator_create(
    variable: Tensor, output_type: Any, name: str | None = None
) -> Tensor:
    """Zeros in the shape of a variable."""
    return tf.zeros(variable.shape, output_type, name=name)


def gradient_accumulator_create_from_shape(
    shape: ShapeLike, output_type: Any, name: str | None = None
) -> Tensor:
    """Zeros of a shape."""
    return tf.zeros(shape, output_type, name=name)


def gradient_accumulator_add_with_scale(
    accumulator: Tensor,
    gradients: Tensor,
    accumulator_scale: Any,
    name: str | None = None,
) -> Tensor:
    """The scaled accumulator and the gradients, added up in the accumulator's type."""
    accumulator = tf.convert_to_tensor(accumulator)
    scaled = accumulator * tf.cast(accumulator_scale, accumulator.dtype)
    return tf.add(scaled, tf.cast(gradients, accumulator.dtype), name=name)


def gradient_accumulator_sink(input: Tensor, name: str | None = None) -> Tensor:
    """The accumulator, where it is used."""
    return tf.identity(input, name=name)


_OPTIMIZER = (
    "optimizers.gradient_accumulation_optimizer.GradientAccumulationOptimizerV2"
)

__getattr__ = _absent.explain(
    __name__,
    {
        "ipu_stateful_gradient_accumulate": _OPTIMIZER,
        "ipu_stateful_gradient_accumulate_with_momentum": _OPTIMIZER,
        "execution_counter": "ops.internal_ops.get_current_iteration_counter",
        "ipu_user_op": "ops.custom_ops.precompiled_user_op",
        "ipu_user_read_write_op": "ops.custom_ops.cpu_user_operation",
        "codelet_expression_op": "ops.custom_ops.codelet_expression_op",
    },
)
