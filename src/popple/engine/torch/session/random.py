"""Device random numbers: seed and generator state of a session, apart from the host's.

A model that draws numbers does so from this state, so that it repeats when built
afresh and the program's own numbers do not depend on it. Programs see the state as a
list of integers: the seed, then the words of the generator once it has been used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from popple.errors import UsageError


class DeviceRandom:
    """The state of one model's random numbers, drawn on the computer's `device`.

    A `seed` of None is taken from the host's generator when it is needed. `is_read`
    says whether the state was read since the model last ran.
    """

    def __init__(self, seed: int | None = None, device: str = "cpu") -> None:
        self.seed = seed
        self.is_read = True
        self._state: torch.Tensor | None = None
        self._generator = _generator_of(device)

    @property
    def has_state(self) -> bool:
        """Whether numbers have been drawn, or a state was given."""
        return self._state is not None

    @contextmanager
    def active(self, is_needed: bool) -> Iterator[None]:
        """Draw from the device's state inside; the host's is put back after."""
        self.is_read = False
        if not is_needed:
            yield
            return
        # Kernels draw from torch's default generator, which cannot be told per call:
        # its state is exchanged around the run.
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
        if self.seed is None:
            # Follows `torch.manual_seed`, so that a program repeats; another number, so
            # that the device does not draw what the host draws.
            self.seed = torch.initial_seed() + 1
        return self.seed

    def read(self) -> list[int]:
        """Seed and state, to be given to `write` later."""
        self.is_read = True
        words = [] if self._state is None else self._state.view(torch.int64).tolist()
        return [self._known_seed(), *words]

    def write(self, words: Sequence[int]) -> None:
        """Go on from a seed and state that were read before, or from a seed alone."""
        if not words:
            raise UsageError(
                "an RNG state is a list of integers that begins with the seed."
            )
        self.seed, *rest = words
        state = torch.tensor(rest, dtype=torch.int64).view(torch.uint8)
        if rest and state.numel() != self._generator.get_state().numel():
            raise UsageError(
                f"the RNG state has {len(rest)} words, which is not what this version "
                "of torch uses.",
                remedy="Give only the seed, or a state that was read here.",
            )
        self._state = state if rest else None


def _generator_of(device: str) -> torch.Generator:
    """What draws a device's numbers when no generator is named."""
    if device == "cpu":
        return torch.default_generator
    torch.cuda.init()
    return torch.cuda.default_generators[torch.cuda.current_device()]
