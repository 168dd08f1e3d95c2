"""The garbage collector, paused while a program is compiled and modelled.

Both make millions of small objects that live until the end. Each pass of Python's
collector visits all of them and frees next to nothing: on a model of 100 layers that
was a sixth of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

# So many objects more than the last full pass has left may wait for the next one: a
# pass over them takes some tenths of a second, and they take some hundred megabytes.
_MOST_WAITING = 1_000_000


class _Old:
    """How many objects are old, by the pauses so far.

    Python's own rule for a full pass knows nothing of what is old from the start: a
    process that compiles program after program would keep the cycles of all.
    """

    def __init__(self) -> None:
        self.after_full_pass = 0
        self.before_last_pause = 0
        self.now = 0
        self.full_passes = 0

    def look(self) -> None:
        """Look for cycles if earlier programs may have left many.

        What the last pause made does not count yet: what it traced is modelled now.
        """
        # Between pauses Python makes full passes by its own rule, too.
        if not self.now or _num_full_passes() != self.full_passes:
            self._start()
        waiting = self.before_last_pause - self.after_full_pass
        if waiting > max(_MOST_WAITING, self.after_full_pass):
            gc.collect()
            self._start()

    def _start(self) -> None:
        self.age()
        self.after_full_pass = self.before_last_pause = self.now
        self.full_passes = _num_full_passes()

    def age(self) -> None:
        """Have the collector take all that lives now for old.

        It would visit every object of the meantime with its first pass, which is for
        young ones; old ones it visits seldom. What a program has frozen stays so.
        """
        if gc.get_freeze_count():
            return
        gc.freeze()
        self.before_last_pause, self.now = self.now, gc.get_freeze_count()
        gc.unfreeze()


def _num_full_passes() -> int:
    return gc.get_stats()[-1]["collections"]


_old = _Old()  # of this process, as the collector is


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """Cycles are not looked for meanwhile; what is counted to 0 is freed as always."""
    if not gc.isenabled():
        yield
        return
    _old.look()
    gc.disable()
    try:
        yield
    finally:
        _old.age()
        gc.enable()
