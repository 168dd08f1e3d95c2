"""The numbers that automatic loss scaling is set up with, checked when they are set.

They live in variables: a program that is already traced follows when one is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

__all__ = ["OfInner", "ReadOnly", "Setting", "check_power_of_two"]

Check = Callable[[Any, str, Any], None]


class Setting:
    """A number of an optimiser, as a Python value outside and a variable in programs.

    With `resets`, a change makes the optimiser forget what it has collected.
    """

    def __init__(
        self, dtype: tf.DType, check: Check | None = None, resets: bool = False
    ) -> None:
        self._dtype = dtype
        self._check = check
        self._resets = resets
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, optimizer: Any, owner: type | None = None) -> Any:
        return self if optimizer is None else optimizer._settings[self._name][0]

    def __set__(self, optimizer: Any, value: Any) -> None:
        if self._check is not None:
            self._check(optimizer, self._name, value)
        known = optimizer._settings.get(self._name)
        if known is None:
            # A variable of the optimiser, not of the function that is being traced.
            with tf.init_scope():
                variable = tf.Variable(
                    value, dtype=self._dtype, trainable=False, name=self._name
                )
            optimizer._settings[self._name] = (value, variable)
            return
        if self._resets and value != known[0]:
            optimizer.reset()
        known[1].assign(tf.cast(value, self._dtype))
        optimizer._settings[self._name] = (value, known[1])


class ReadOnly:
    """A value computed by an optimiser, that nobody may set."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read
        self._name = read.__name__
        self.__doc__ = read.__doc__

    def __get__(self, optimizer: Any, owner: type | None = None) -> Any:
        return self if optimizer is None else self._read(optimizer)

    def __set__(self, optimizer: Any, value: Any) -> None:
        raise ValueError(f"{self._name} is a read only property.")


class OfInner:
    """A value that an optimiser has from the one inside it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, optimizer: Any, owner: type | None = None) -> Any:
        return self if optimizer is None else getattr(optimizer._opt, self._name)

    def __set__(self, optimizer: Any, value: Any) -> None:
        raise AttributeError(
            f"{self._name} belongs to the optimizer that was given to "
            f"{type(optimizer).__name__}: set it there."
        )


def check_power_of_two(_: Any, name: str, value: Any) -> None:
    """Factors of a loss must not change its digits."""
    if value < 1 or value & (value - 1):
        raise ValueError(f"{name} must be a power of two, not {value}.")
