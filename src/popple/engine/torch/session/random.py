"""Device random numbers: seed and generator state of a session, apart from the host's.

A model that draws numbers does so from this state, so that it repeats when built
afresh and the program's own numbers do not depend on it. Every replica draws numbers of
its own, which depend on its number among all replicas: a job draws the same numbers
however its replicas are spread over processes. Programs see the state as a list of
integers: the seed, then the words of each replica's generator once it has been used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from popple.errors import UsageError

# Seeds of neighbouring replicas are far apart: 2**64 divided by the golden ratio.
_STRIDE = 0x9E3779B97F4A7C15


class DeviceRandom:
    """The state of one model's random numbers, drawn on the computer's `device`.

    A `seed` of None is taken from the host's generator when it is needed. The model has
    `replicas` replicas here, the first of which is number `first`. `is_read` says
    whether the state was read since the model last ran.
    """

    def __init__(
        self,
        seed: int | None = None,
        device: str = "cpu",
        replicas: int = 1,
        first: int = 0,
    ) -> None:
        self.seed = seed
        self.is_read = True
        self._first = first
        self._states: list[torch.Tensor | None] = [None] * replicas
        self._replica = 0
        self._generator = _generator_of(device)

    @property
    def has_state(self) -> bool:
        """Whether numbers have been drawn, or a state was given."""
        return any(state is not None for state in self._states)

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
        self._enter(0)
        try:
            yield
        finally:
            self._leave()
            self._generator.set_state(host)

    def use(self, replica: int) -> None:
        """Inside `active`: draw the numbers of this replica from now on."""
        if replica != self._replica:
            self._leave()
            self._enter(replica)

    def _enter(self, replica: int) -> None:
        self._replica = replica
        state = self._states[replica]
        if state is not None:
            self._generator.set_state(state)
        else:
            self._generator.manual_seed(self._seed_of(replica))

    def _leave(self) -> None:
        self._states[self._replica] = self._generator.get_state()

    def _seed_of(self, replica: int) -> int:
        return (self._known_seed() + (self._first + replica) * _STRIDE) % (1 << 63)

    def _known_seed(self) -> int:
        if self.seed is None:
            # Follows `torch.manual_seed`, so that a program repeats; another number, so
            # that the device does not draw what the host draws.
            self.seed = torch.initial_seed() + 1
        return self.seed

    def read(self) -> list[int]:
        """Seed and state, to be given to `write` later."""
        self.is_read = True
        used = [state for state in self._states if state is not None]
        words = torch.cat(used).view(torch.int64).tolist() if used else []
        return [self._known_seed(), *words]

    def write(self, words: Sequence[int]) -> None:
        """Go on from a seed and state that were read before, or from a seed alone."""
        if not words:
            raise UsageError(
                "an RNG state is a list of integers that begins with the seed."
            )
        self.seed, *rest = words
        count = len(self._states)
        if not rest:
            self._states = [None] * count
            return
        state = torch.tensor(rest, dtype=torch.int64).view(torch.uint8)
        if state.numel() != count * self._generator.get_state().numel():
            raise UsageError(
                f"the RNG state has {len(rest)} words, which is not what {count} "
                "replicas and this version of torch use.",
                remedy="Give only the seed, or a state that was read here.",
            )
        self._states = list(state.view(count, -1))


def _generator_of(device: str) -> torch.Generator:
    """What draws a device's numbers when no generator is named."""
    if device == "cpu":
        return torch.default_generator
    torch.cuda.init()
    return torch.cuda.default_generators[torch.cuda.current_device()]
