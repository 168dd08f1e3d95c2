"""What lets the instances of a job wait for each other: the launcher's store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from popple.distributed import Instance, StoreClient, connect_store
from popple.distributed.meeting import SECONDS_TO_MEET
from popple.errors import UsageError


class Backend:
    """This process's side of the job, from `start` to `stop`."""

    def __init__(self) -> None:
        self.is_started = False
        self._among: frozenset[int] | None = None
        self._num_waits: dict[frozenset[int], int] = {}

    def start(self, instance: Instance) -> None:
        """Connect to the job; waits until all instances have done so."""
        if self.is_started:
            return
        self.wait(instance)
        self.is_started = True

    def stop(self) -> None:
        """Forget that there are others."""
        self.is_started = False

    @contextmanager
    def among(self, instances: frozenset[int]) -> Iterator[None]:
        """Inside, waiting is for these instances alone."""
        before, self._among = self._among, instances
        try:
            yield
        finally:
            self._among = before

    def wait(self, instance: Instance) -> None:
        """Wait until all instances, or those of `among`, are here."""
        everyone = frozenset(range(instance.count))
        members = everyone if self._among is None else everyone & self._among
        if len(members) < 2:
            return
        # Every wait has a name of its own: instances of a fast one must not be taken
        # for those of the next.
        number = self._num_waits.get(members, 0)
        self._num_waits[members] = number + 1
        numbers = "-".join(map(str, sorted(members)))
        try:
            _meet(connect_store(instance), f"wait {number} of {numbers}", len(members))
        except UsageError as error:
            raise RuntimeError(str(error)) from error


def _meet(store: StoreClient, name: str, count: int) -> None:
    """Wait until `count` processes have come; the last one opens the door."""
    if store.add(f"{name}: here") == count:
        store.put(f"{name}: open", "")
    store.get(f"{name}: open", SECONDS_TO_MEET)


BACKEND = Backend()
"""The one of this process."""
