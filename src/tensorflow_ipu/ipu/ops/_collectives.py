"""Exchanges between groups of replicas, differentiable.

Replicas are divided into groups of neighbours; a function given here combines the
tensors of one group, a list with one tensor per replica, into one result for each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow import collectives

from .. import _errors
from ._tensors import Gradient, Tensor

Combine = Callable[[list[Tensor]], list[Tensor]]


def in_groups(combine: Combine, group_size: int | None) -> Combine:
    """`combine` for every group of `group_size` neighbouring replicas."""

    def combine_all(tensors: list[Tensor]) -> list[Tensor]:
        size = group_size or len(tensors)
        if len(tensors) == 1 and size > 1:
            return [_not_replicated(tensors[0], combine, size)]
        if len(tensors) % size:
            raise _errors.error(_REFUSED, _does_not_divide(size, len(tensors)))
        starts = range(0, len(tensors), size)
        return [r for start in starts for r in combine(tensors[start : start + size])]

    return combine_all


def _not_replicated(tensor: Tensor, combine: Combine, size: int) -> Tensor:
    """A result of the right shape that fails when it runs.

    A graph may be built before the device has the replicas; it is built again then.
    """
    refused = _errors.failing(_REFUSED, _does_not_divide(size, 1))
    with tf.control_dependencies([refused]):
        return tf.identity(combine([tensor] * size)[0])


_REFUSED = tf.errors.InvalidArgumentError


def _does_not_divide(size: int, num_replicas: int) -> str:
    return (
        f"The replica group size (got {size}) does not evenly divide the total number "
        f"of replicas (got {num_replicas})"
    )


def exchange(
    tensor: Tensor, forward: Combine, backward: Combine, group_size: int | None
) -> Tensor:
    """What `forward` makes of the group's tensors; `backward` of their gradients."""

    @tf.custom_gradient
    def exchanged(value: Tensor) -> tuple[Tensor, Gradient]:
        def gradient(upstream: Tensor) -> Tensor:
            return collectives.exchange(upstream, in_groups(backward, group_size))

        return collectives.exchange(value, in_groups(forward, group_size)), gradient

    return exchanged(tf.convert_to_tensor(tensor))


def same_for_all(reduce: Callable[[list[Tensor]], Tensor]) -> Combine:
    """Every replica of the group receives what `reduce` gives."""
    return lambda tensors: [reduce(tensors)] * len(tensors)


def add(tensors: list[Tensor]) -> Tensor:
    """The sum, in the order of the list."""
    return tensors[0] if len(tensors) == 1 else tf.add_n(tensors)


def mean(tensors: list[Tensor]) -> Tensor:
    """The mean; parts are divided before they are added, lest the sum overflow."""
    number = tf.cast(len(tensors), tensors[0].dtype)
    return add([tensor / number for tensor in tensors])


def _pairwise(
    operation: Callable[[Tensor, Tensor], Tensor],
) -> Callable[[list[Tensor]], Tensor]:
    return functools.partial(functools.reduce, operation)


REDUCTIONS: dict[str, Callable[[list[Tensor]], Tensor]] = {
    "COLLECTIVE_OP_ADD": add,
    "COLLECTIVE_OP_MUL": _pairwise(tf.multiply),
    "COLLECTIVE_OP_MIN": _pairwise(tf.minimum),
    "COLLECTIVE_OP_MAX": _pairwise(tf.maximum),
    "COLLECTIVE_OP_LOGICAL_AND": _pairwise(tf.logical_and),
    "COLLECTIVE_OP_LOGICAL_OR": _pairwise(tf.logical_or),
    "COLLECTIVE_OP_SQUARE_ADD": lambda tensors: add([tf.square(t) for t in tensors]),
    "COLLECTIVE_OP_MEAN": mean,
}


def reduction(name: str) -> Callable[[list[Tensor]], Tensor]:
    """The reduction of that name."""
    if name not in REDUCTIONS:
        raise ValueError(f"{name!r} is no reduction; there are {', '.join(REDUCTIONS)}")
    return REDUCTIONS[name]
