"""Seeds of the random numbers that devices draw.

In: `reset` by the program. Out: the seed of a device for operators that draw numbers
themselves (`get`), and TensorFlow's own generators started anew in eager programs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorflow.python.eager import context
from tensorflow.python.framework import random_seed

__all__ = ["Seed", "get", "on_reset", "reset"]


@dataclass(frozen=True)
class Seed:
    """A seed, and whether all replicas draw the same numbers from it."""

    value: int
    identical_replicas: bool = False


class Seeds:
    """The seeds that a program gave, by device ordinal."""

    def __init__(self) -> None:
        self._seeds: dict[int, Seed] = {}
        self._listeners: list[Callable[[int, Seed], None]] = []
        self._has_seeded_tensorflow = False

    def reset(self, ordinal: int, seed: Seed) -> None:
        """Give a device a seed and tell the listeners."""
        self._seeds[ordinal] = seed
        self._seed_tensorflow(seed.value)
        for listener in tuple(self._listeners):
            listener(ordinal, seed)

    def _seed_tensorflow(self, value: int) -> None:
        # The seed of the host is the program's own if it set one.
        is_ours = self._has_seeded_tensorflow or context.global_seed() is None
        # Setting a seed in a graph of TensorFlow 1 would change operations built later
        # only.
        if context.executing_eagerly() and is_ours:
            random_seed.set_seed(value)
            self._has_seeded_tensorflow = True

    def get(self, ordinal: int) -> Seed | None:
        """The seed of a device; None if the program gave none."""
        return self._seeds.get(ordinal)

    def on_reset(self, callback: Callable[[int, Seed], None]) -> None:
        """Call `callback` with ordinal and seed whenever one is given."""
        self._listeners.append(callback)


_SEEDS = Seeds()


def reset(seed: int, ordinal: int = 0, identical_replicas: bool = False) -> None:
    """Start the random numbers of a device anew."""
    _SEEDS.reset(ordinal, Seed(seed, identical_replicas))


def get(ordinal: int = 0) -> Seed | None:
    """The seed that the program gave a device, if any."""
    return _SEEDS.get(ordinal)


def on_reset(callback: Callable[[int, Seed], None]) -> None:
    """Call `callback` with ordinal and seed whenever the program gives one."""
    _SEEDS.on_reset(callback)
