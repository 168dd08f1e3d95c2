"""What infeeds and outfeeds share: names, devices, checks, synthetic data.

Synthetic data is what feeds carry when TF_POPLAR_FLAGS asks for no transfers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.distribute import distribute_lib

from .. import _errors
from . import poplar_flags

_NUMBERS = itertools.count()


def new_name() -> str:
    """A feed's name, unique in this process."""
    return str(next(_NUMBERS))


def checked_ordinal(device_ordinal: Any) -> int:
    """The number of a device; by default that of the strategy in scope."""
    if device_ordinal is None:
        strategy = distribute_lib.get_strategy()
        device_ordinal = getattr(strategy, "_device_ordinal", 0)
    if not isinstance(device_ordinal, int):
        raise ValueError(f"Device ordinal must be an integer, not {device_ordinal!r}.")
    if device_ordinal < 0:
        raise ValueError(f"Device ordinal must be >= 0, not {device_ordinal}.")
    return device_ordinal


def check_sizes(kind: str, shapes: Iterable[tf.TensorShape]) -> None:
    """Refuse tensors without elements, as the device cannot stream them."""
    for shape in shapes:
        if 0 in (shape.as_list() if shape.rank else []):
            raise _errors.error(
                tf.errors.InvalidArgumentError,
                f"Detected an input tensor to an {kind} queue with a dimension of"
                f" size 0: its shape is {shape}. Leave it out of the queue.",
            )


def has_synthetic_outfeeds() -> bool:
    """Whether nothing leaves the device."""
    return poplar_flags.uses_synthetic_data(poplar_flags.Category.OUTFEED)


def synthetic_or_real(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The data set itself, or an endless one made up on the device."""
    initializer = poplar_flags.read().infeed_initializer
    if initializer is None:
        return dataset
    element = tf.nest.map_structure(
        lambda spec: _synthetic(spec, initializer), dataset.element_spec
    )
    return tf.data.Dataset.from_tensors(element).repeat()


def _synthetic(spec: tf.TensorSpec, initializer: poplar_flags.Initializer) -> tf.Tensor:
    if not initializer.distribution:
        return tf.cast(tf.fill(spec.shape, initializer.constant), spec.dtype)
    draw = (
        tf.random.normal if initializer.distribution == "normal" else tf.random.uniform
    )
    return tf.cast(draw(spec.shape), spec.dtype)
