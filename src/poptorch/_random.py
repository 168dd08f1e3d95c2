"""The device's random numbers: a state of their own, apart from the host's.

A model that draws numbers does so from this state, so that it repeats when built
afresh and the program's own numbers do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from .options import Options

__all__ = ["DeviceRandom"]


class DeviceRandom:
    """The state of one model's random numbers; seeded by `randomSeed` or the host."""

    def __init__(self, options: Options) -> None:
        self._seed: int | None = options._values.get("random_seed")
        self._state: torch.Tensor | None = None

    @contextmanager
    def active(self, is_needed: bool) -> Iterator[None]:
        """Draw from the device's state inside; the host's is put back after."""
        if not is_needed:
            yield
            return
        host = torch.get_rng_state()
        self._enter()
        try:
            yield
        finally:
            self._state = torch.get_rng_state()
            torch.set_rng_state(host)

    def _enter(self) -> None:
        if self._state is not None:
            torch.set_rng_state(self._state)
            return
        seed = torch.initial_seed() + 1 if self._seed is None else self._seed
        torch.default_generator.manual_seed(seed)
