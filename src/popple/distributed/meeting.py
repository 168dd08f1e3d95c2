"""How the processes of a job find each other: by the launcher, or by an address.

`poprun` keeps a store for its instances. Programs that something else starts name the
place where they meet as PyTorch's own launchers do: MASTER_ADDR and MASTER_PORT.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from popple.distributed.instance import Instance, find_instance
from popple.distributed.store import StoreClient, connect_store
from popple.errors import UsageError

SECONDS_TO_MEET = 1800.0
"""How long a process waits for others: one of them may compile or load data first."""


@dataclass(frozen=True)
class Meeting:
    """Where the processes of a job meet: a launcher's store, or a host and a port."""

    index: int
    count: int
    instance: Instance
    host: str = ""
    port: int = 0

    @property
    def store(self) -> StoreClient | None:
        """The launcher's store, if there is a launcher."""
        return connect_store(self.instance) if self.instance.store else None


def find_meeting(
    index: int, count: int, environ: Mapping[str, str] | None = None
) -> Meeting:
    """Where process `index` meets the others; UsageError if nothing tells."""
    found = os.environ if environ is None else environ
    instance = find_instance(found) or Instance(index=index, count=count)
    if instance.store:
        return Meeting(index, count, instance)
    host, port = found.get("MASTER_ADDR", ""), found.get("MASTER_PORT", "")
    if not host or not port.isdigit():
        raise UsageError(
            f"Process {index} of {count} does not know where to find the others.",
            remedy="Start the program with poprun, or set MASTER_ADDR and MASTER_PORT "
            "to a host and a free port of process 0.",
        )
    return Meeting(index, count, instance, host, int(port))
