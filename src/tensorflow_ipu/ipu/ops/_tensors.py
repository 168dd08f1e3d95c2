"""What the operation modules share: a name for tensors, and lists of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow.compat.v2 as tf

# TensorFlow's own tensor classes say little to a checker, and most operations take
# whatever converts to a tensor.
Tensor: TypeAlias = Any
Dtype: TypeAlias = Any
Gradient: TypeAlias = Callable[..., Any]


def as_list(values: Any) -> list[Any]:
    """A list of `values`, or of the single value."""
    return list(values) if isinstance(values, list | tuple) else [values]


def flat_list(values: Any) -> list[Any]:
    """Nested lists, tuples and ranges as one list."""
    if not isinstance(values, list | tuple | range):
        return [values]
    return [leaf for value in values for leaf in flat_list(value)]


def tensors(*values: Any) -> list[Tensor]:
    """Every value as a tensor."""
    return [tf.convert_to_tensor(value) for value in values]


def sizes(tensor: Tensor) -> list[Any]:
    """The size of each dimension; None for one that is not known.

    TensorFlow 1 has objects in their place, which are no numbers.
    """
    return [tf.compat.dimension_value(size) for size in tensor.shape]


def same_or_list(values: Sequence[Tensor]) -> tf.Tensor | list[tf.Tensor]:
    """The only element, or all of them as a list."""
    return values[0] if len(values) == 1 else list(values)
