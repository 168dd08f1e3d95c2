"""Programs that are compiled while somebody watches, such as `popple run`.

In: every program that a facade compiles. Out: the newest of each name with its cost,
to be asked for a verdict when the user's script is over.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from popple.session.cost import ModelledCost

Watched = dict[str, ModelledCost]

_watched: ContextVar[Watched | None] = ContextVar("watched", default=None)


@contextmanager
def watch_programs() -> Generator[Watched]:
    """Collect the programs that are compiled inside, by name."""
    found: Watched = {}
    token = _watched.set(found)
    try:
        yield found
    finally:
        _watched.reset(token)


def note_program(name: str, cost: ModelledCost) -> None:
    """A program has been compiled."""
    found = _watched.get()
    if found is not None:
        # The newest counts: programs that compile in a loop must not pile up.
        found[name] = cost
