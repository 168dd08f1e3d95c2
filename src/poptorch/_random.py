"""The device's random numbers: a state of their own, apart from the host's.

A model that draws numbers does so from this state, so that it repeats when built
afresh and the program's own numbers do not depend on it. Programs see the state as a
list of integers: the seed, then the words of the generator once it has been used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from ._errors import Error
from ._logging import logger
from .options import Options

__all__ = ["DeviceRandom"]


class DeviceRandom:
    """The state of one model's random numbers; seeded by `randomSeed` or the host.

    `device` is the computer's device that draws them.
    """

    def __init__(self, options: Options, device: str = "cpu") -> None:
        self._seed: int | None = options._values.get("random_seed")
        self._state: torch.Tensor | None = None
        self._is_read = True
        self._generator = _generator_of(device)

    @contextmanager
    def active(self, is_needed: bool) -> Iterator[None]:
        """Draw from the device's state inside; the host's is put back after."""
        self._is_read = False
        if not is_needed:
            yield
            return
        host = self._generator.get_state()
        self._enter()
        try:
            yield
        finally:
            self._state = self._generator.get_state()
            self._generator.set_state(host)

    def _enter(self) -> None:
        if self._state is not None:
            self._generator.set_state(self._state)
        else:
            self._generator.manual_seed(self._known_seed())

    def _known_seed(self) -> int:
        if self._seed is None:
            self._seed = torch.initial_seed() + 1
        return self._seed

    def read(self) -> list[int]:
        """Seed and state, to be given to `write` later."""
        if not self._is_read:
            logger.debug("Reading random seed")
            logger.debug("Reading RNG state")
            self._is_read = True
        words = [] if self._state is None else self._state.view(torch.int64).tolist()
        return [self._known_seed(), *words]

    def write(self, words: Sequence[int]) -> None:
        """Go on from a seed and state that were read before, or from a seed alone."""
        if not words:
            raise Error("An RNG state is a list of integers that begins with the seed.")
        self._seed, *rest = words
        state = torch.tensor(rest, dtype=torch.int64).view(torch.uint8)
        if rest and state.numel() != self._generator.get_state().numel():
            raise Error(
                f"The RNG state has {len(rest)} words, which is not what this version "
                "of torch uses. Give only the seed, or a state that was read here."
            )
        self._state = state if rest else None

    def send(self) -> None:
        """Load what is known onto newly held IPUs."""
        if self._seed is not None:
            logger.debug("Setting random seed to %d", self._seed)
        if self._state is not None:
            logger.debug("Setting RNG state")


def _generator_of(device: str) -> torch.Generator:
    """What draws a device's numbers when no generator is named."""
    if device == "cpu":
        return torch.default_generator
    torch.cuda.init()
    return torch.cuda.default_generators[torch.cuda.current_device()]
