"""The progress bar shown while a model is compiled."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tqdm import tqdm

from popple.session.interrupts import safe_point

__all__ = ["CompilationProgress", "ProgressBar"]

_FORMAT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}]"


class CompilationProgress:
    """Moves a bar through the parts of a compilation, which count alike."""

    def __init__(
        self, show: Callable[[int, int], None], parts: Sequence[str], total: int
    ) -> None:
        self._show = show
        self._parts = parts
        self._total = total
        self._index = 0

    def __call__(self, part: str) -> None:
        safe_point()
        self._index = self._parts.index(part)
        self.move(0.0)

    def move(self, share: float) -> None:
        """A share of the part that began last is done."""
        done = int(self._total * (self._index + share)) // len(self._parts)
        self._show(done, self._total)


class ProgressBar:
    """Called with (done, total); draws a bar and measures `compilation_time`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.compilation_time: timedelta | None = None
        self._clock = clock
        self._start = 0.0
        self._bar: Any = None

    def __call__(self, progress: int, total: int) -> None:
        if self._bar is None:
            self._start = self._clock()
            self._bar = tqdm(desc="Graph compilation", total=total, bar_format=_FORMAT)
        self._bar.update(progress - self._bar.n)
        self.compilation_time = timedelta(seconds=self._clock() - self._start)
        if progress >= total:
            self._bar.close()
            self._bar = None

    def close(self) -> None:
        """Stop drawing a bar that was not finished."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __getstate__(self) -> dict[str, Any]:
        # A half-drawn bar belongs to a terminal and cannot travel.
        return {**self.__dict__, "_bar": None}
