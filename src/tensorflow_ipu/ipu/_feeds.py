"""What infeeds and outfeeds share: names, devices, checks of shapes and types."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib

from . import _errors

_NUMBERS = itertools.count()

# Arguments of older releases: what they set follows from the program today.
_FORMER_ARGUMENTS = frozenset(
    {"feed_name", "replication_factor", "data_to_prefetch", "io_batch_size"}
)


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


def accept_former_arguments(owner: str, arguments: Mapping[str, Any]) -> None:
    """Warn of arguments that older releases had; refuse any other."""
    unknown = sorted(set(arguments) - _FORMER_ARGUMENTS)
    if unknown:
        raise TypeError(f"{owner} got an unexpected keyword argument {unknown[0]!r}")
    for name in arguments:
        warnings.warn(
            f"{owner}: `{name}` is an argument of older releases and has no effect;"
            " remove it.",
            DeprecationWarning,
            stacklevel=3,
        )


def check_sizes(kind: str, shapes: Iterable[tf.TensorShape]) -> None:
    """Refuse tensors without elements, as the device cannot stream them."""
    for shape in shapes:
        if 0 in (shape.as_list() if shape.rank else []):
            raise _errors.error(
                tf.errors.InvalidArgumentError,
                f"Detected an input tensor to an {kind} queue with a dimension of"
                f" size 0: its shape is {shape}. Leave it out of the queue.",
            )
