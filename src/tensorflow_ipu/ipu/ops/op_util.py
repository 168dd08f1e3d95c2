"""What optimisers and other operations are made of: accumulation and weight updates.

In a loop, `accumulate_gradients` adds each iteration's gradients to sums that stay on
the device, and `create_resource_update` runs a function with these sums once every so
many iterations, after which they start from zero again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compiler.plugin.poplar.driver import threestate_pb2

from popple.engine.tensorflow import region, weight_update
from popple.marks import ACCUMULATE, NOTHING, OFF_CHIP
from tensorflow_ipu._translate import off_chip_words
from tensorflow_ipu._types import DTypeLike

from .. import _errors
from .._programs.loop_counters import current_loop
from .._programs.marks import marked
from ._passes import (
    HandleMatMulGrads,
    SetMlType,
    SetOpAsBwd,
    SetOpAsFwd,
    SetOpAsWU,
    conv_gradients_override_map,
    gradient_override_scope,
    gradients_override_map,
    matmul_gradients_override_map,
)
from ._pipeline.accumulation import Scale, accumulator_dtype, contribution, scaled
from ._scratch import Scratch
from ._tensors import Dtype, Tensor

__all__ = [
    "HandleMatMulGrads",
    "SetMlType",
    "SetOpAsBwd",
    "SetOpAsFwd",
    "SetOpAsWU",
    "accumulate_gradients",
    "accumulate_tagged_gradients",
    "bool_to_three_state",
    "check_offload",
    "conv_gradients_override_map",
    "create_resource_update",
    "get_accumulator_dtype",
    "get_activation_name",
    "gradient_override_scope",
    "gradients_override_map",
    "matmul_gradients_override_map",
]

GradientsAndVariables = Sequence[tuple[Any, Any]]


@dataclass
class _Accumulators:
    """The sums made in each graph since its last weight update was built."""

    pending: weakref.WeakKeyDictionary[Any, list[Scratch]] = field(
        default_factory=weakref.WeakKeyDictionary
    )

    def add(self, accumulator: Scratch) -> None:
        """Remember a sum of the graph being built."""
        graph = tf.compat.v1.get_default_graph()
        self.pending.setdefault(graph, []).append(accumulator)

    def take(self) -> list[Scratch]:
        """The sums of the graph being built; the next update gets others."""
        return self.pending.pop(tf.compat.v1.get_default_graph(), [])


_ACCUMULATORS = _Accumulators()


def accumulate_gradients(
    grads_and_vars: GradientsAndVariables,
    gradient_accumulation_dtype: DTypeLike | Callable[[tf.Variable], DTypeLike],
    accum_scale: Scale = 1.0,
    grad_scale: Scale = None,
    create_accumulator_from_shape: bool = False,
) -> list[tuple[Any, Any]]:
    """The pairs with every gradient replaced by the sum over iterations so far.

    `gradient_accumulation_dtype` is None for the type of the variable, a type, or a
    function from variable to type. `accum_scale` and `grad_scale` multiply the sum and
    the gradient before they are added.
    """
    accumulated = []
    for gradient, variable in grads_and_vars:
        if gradient is not None:
            dtype = accumulator_dtype(variable, gradient_accumulation_dtype)
            addend = contribution(gradient, grad_scale, dtype)
            gradient = _accumulate(addend, accum_scale)
        accumulated.append((gradient, variable))
    return accumulated


def _accumulate(addend: Tensor, accum_scale: Scale) -> Tensor:
    """Add to a new sum, which is zero in the first iteration."""
    loop = current_loop()
    if loop is None:
        return addend
    accumulator = Scratch(addend.shape, addend.dtype)
    _ACCUMULATORS.add(accumulator)
    with region(ACCUMULATE):
        before = tf.cond(
            tf.equal(loop.counter, 0), lambda: tf.zeros_like(addend), accumulator.read
        )
        total = scaled(before, accum_scale) + addend
        with tf.control_dependencies([accumulator.assign(total)]):
            return tf.identity(total)


def accumulate_tagged_gradients(
    tagged_grads: Mapping[str, Sequence[Any]],
    gradient_accumulation_dtype: DTypeLike | Callable[[tf.Variable], DTypeLike],
    accum_scale: Scale = 1.0,
    grad_scale: Scale = None,
) -> dict[str, list[Any]]:
    """Captured gradients, lists by tag, accumulated in the same way."""
    return {
        tag: [
            total
            for total, _ in accumulate_gradients(
                [(gradient, gradient) for gradient in gradients],
                gradient_accumulation_dtype,
                accum_scale,
                grad_scale,
            )
        ]
        for tag, gradients in tagged_grads.items()
    }


def create_resource_update(
    fn: Callable[[Tensor], Any],
    name: str,
    control_outputs: list[Any],
    offload_weight_update_variables: bool | None,
    replicated_optimizer_state_sharding: bool | None,
    gradient_accumulation_count: int,
) -> tf.Operation:
    """The operation that calls `fn(count)` in every `count`-th iteration of the loop.

    `fn` appends what must run to `control_outputs`. Afterwards the sums of
    `accumulate_gradients` start from zero.
    """
    check_offload(offload_weight_update_variables, replicated_optimizer_state_sharding)
    count = gradient_accumulation_count
    _check_trips(name, count)
    loop = current_loop()
    accumulators = _ACCUMULATORS.take()

    def update() -> Tensor:
        fn(tf.constant(count))
        with tf.control_dependencies([*control_outputs]), region(NOTHING):
            zeros = [a.assign(tf.zeros(a.shape, a.dtype)) for a in accumulators]
        with tf.control_dependencies(zeros or control_outputs):
            return tf.constant(True)

    off_chip = off_chip_words(
        {
            "offload_weight_update_variables": offload_weight_update_variables,
            "replicated_optimizer_state_sharding": replicated_optimizer_state_sharding,
        }
    )
    with (
        tf.name_scope(f"{name}/WU"),
        weight_update(count),
        marked({OFF_CHIP: off_chip}),
    ):
        if loop is None:
            return tf.group(update())
        # Counted from the start of the loop: runs begin with empty sums.
        is_last = tf.equal(tf.math.floormod(loop.counter + 1, count), 0)
        return tf.group(tf.cond(is_last, update, lambda: tf.constant(False)))


def _check_trips(name: str, count: int) -> None:
    """Refuse a loop that would end in the middle of an accumulation."""
    loop = current_loop()
    num_trips = 1 if loop is None else loop.num_trips
    if num_trips is not None and num_trips % count:
        where = "outside of a loop" if loop is None else f"in a loop of {num_trips}"
        raise _errors.error(
            tf.errors.FailedPreconditionError,
            f"Detected a gradient accumulation operation with {count} mini-batches "
            f"({name}) {where} iterations. The number of iterations of the loop around "
            f"it (ipu.loops.repeat) must be a multiple of {count}.",
        )


def check_offload(offload: bool | None, shard_state: bool | None) -> None:
    """Refuse to shard optimiser state that must stay on the device."""
    if shard_state and offload is False:
        raise ValueError(
            "To use replicated_optimizer_state_sharding, optimizer state must be "
            "offloaded: set offload_weight_update_variables."
        )


def get_accumulator_dtype(variable: tf.Variable, dtype_override: Any) -> Dtype:
    """The type of the sum of a variable's gradients, see `accumulate_gradients`."""
    return accumulator_dtype(variable, dtype_override)


def bool_to_three_state(value: bool | None, default: str | None = None) -> str:
    """A choice that may be left open, by its name in the configuration."""
    state = threestate_pb2.ThreeState.Name
    if value is None:
        return default or state(threestate_pb2.THREESTATE_UNDEFINED)
    return state(
        threestate_pb2.THREESTATE_ON if value else threestate_pb2.THREESTATE_OFF
    )


_ACTIVATION_HOMES = frozenset(
    {
        "tensorflow.python.keras.activations",
        "tensorflow.python.ops.math_ops",
        "tf_keras.src.activations",
    }
)


def get_activation_name(identifier: Any) -> str:
    """The name of an activation given by name or as a function."""
    if isinstance(identifier, str):
        return identifier
    if not callable(identifier):
        raise TypeError(
            f"Could not interpret activation function identifier: {identifier!r}"
        )
    if identifier.__module__ not in _ACTIVATION_HOMES:
        raise TypeError(
            f"Unrecognized function : {identifier.__module__}.{identifier.__name__}"
        )
    return identifier.__name__
