"""Instance: which of several processes this one is, as its environment tells.

The launcher sets POPDIST_* variables, which programs see through `popdist`, and Open
MPI's names, which `poptorch.Options().Distributed` and older programs read. A program
that was started by itself is alone: one instance with one replica.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from popple.errors import UsageError

TOTAL_REPLICAS = "POPDIST_NUM_TOTAL_REPLICAS"
LOCAL_REPLICAS = "POPDIST_NUM_LOCAL_REPLICAS"
IPUS_PER_REPLICA = "POPDIST_NUM_IPUS_PER_REPLICA"
REPLICA_OFFSET = "POPDIST_REPLICA_INDEX_OFFSET"
LOCAL_INDEX = "POPDIST_LOCAL_INSTANCE_INDEX"
LOCAL_COUNT = "OMPI_COMM_WORLD_LOCAL_SIZE"
OFFLINE = "POPDIST_OFFLINE_MODE"
CACHE_PATH = "POPDIST_EXECUTABLE_CACHE_PATH"
STORE = "POPPLE_STORE"
"""Where the launcher's store listens: host:port."""
STORE_KEY = "POPPLE_STORE_KEY"
"""What a process must know to be let in by the store."""


@dataclass(frozen=True)
class Instance:
    """One process of a job: its number, and how replicas are spread.

    Every instance has `local_replicas` replicas of `ipus_per_replica` IPUs; replicas
    are numbered through all instances. `local_index` and `local_count` number the
    instances of the same host. `store` is the address of the launcher's store, empty
    if no launcher of ours started the process.
    """

    index: int = 0
    count: int = 1
    local_index: int = 0
    local_count: int = 1
    local_replicas: int = 1
    ipus_per_replica: int = 1
    store: str = ""
    store_key: str = ""
    is_offline: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise UsageError(f"There is no instance {self.index} of {self.count}.")
        if self.local_replicas < 1 or self.ipus_per_replica < 1:
            raise UsageError("An instance has at least one replica of one IPU.")

    @property
    def total_replicas(self) -> int:
        """Replicas of all instances together."""
        return self.count * self.local_replicas

    @property
    def replica_offset(self) -> int:
        """Number of this instance's first replica among all replicas."""
        return self.index * self.local_replicas

    def variables(self) -> dict[str, str]:
        """The environment variables that tell a process that it is this instance."""
        numbers = {
            TOTAL_REPLICAS: self.total_replicas,
            LOCAL_REPLICAS: self.local_replicas,
            IPUS_PER_REPLICA: self.ipus_per_replica,
            REPLICA_OFFSET: self.replica_offset,
            LOCAL_INDEX: self.local_index,
            "OMPI_COMM_WORLD_SIZE": self.count,
            "OMPI_COMM_WORLD_RANK": self.index,
            LOCAL_COUNT: self.local_count,
            "OMPI_COMM_WORLD_LOCAL_RANK": self.local_index,
        }
        texts = {name: str(number) for name, number in numbers.items()}
        if self.is_offline:
            texts[OFFLINE] = "1"
        return {**texts, STORE: self.store, STORE_KEY: self.store_key}


def find_instance(environ: Mapping[str, str] | None = None) -> Instance | None:
    """The instance that a launcher made this process; None without a launcher."""
    found = os.environ if environ is None else environ
    if TOTAL_REPLICAS not in found or LOCAL_REPLICAS not in found:
        return None
    local, total = _number(found, LOCAL_REPLICAS), _number(found, TOTAL_REPLICAS)
    if local < 1 or total % local:
        raise UsageError(
            f"{total} replicas cannot be spread over instances of {local}.",
            where=LOCAL_REPLICAS,
            remedy="Start the program with poprun, which sets these variables.",
        )
    return Instance(
        index=_number(found, REPLICA_OFFSET, 0) // local,
        count=total // local,
        local_index=_number(found, LOCAL_INDEX, 0),
        local_count=_number(found, LOCAL_COUNT, 1),
        local_replicas=local,
        ipus_per_replica=_number(found, IPUS_PER_REPLICA, 1),
        store=found.get(STORE, ""),
        store_key=found.get(STORE_KEY, ""),
        is_offline=found.get(OFFLINE, "0") not in ("", "0"),
    )


def get_instance(environ: Mapping[str, str] | None = None) -> Instance:
    """The instance this process is; the only one if no launcher started it."""
    return find_instance(environ) or Instance()


def _number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name, "" if default is None else str(default))
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(
            f"{name} is {text!r}, not a number.",
            remedy="poprun sets it: start the program with that, or unset the POPDIST_ "
            "variables.",
        ) from error
