"""Who takes part, under Horovod's names: its processes are PopDist's instances."""

from __future__ import annotations

import popdist
from popple.distributed import get_instance

__all__ = [
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "shutdown",
    "size",
]


def init(*args: object, **kwargs: object) -> None:
    """Find out about the instances; what Horovod is told about groups has no part."""
    popdist.init()


def shutdown() -> None:
    """Nothing is open that would have to be closed."""


def is_initialized() -> bool:
    """Whether the instances are known, which they always are."""
    return True


def size() -> int:
    """Number of instances."""
    return popdist.getNumInstances()


def rank() -> int:
    """Which of the instances this is."""
    return popdist.getInstanceIndex()


def local_size() -> int:
    """Number of instances on this host."""
    return get_instance().local_count


def local_rank() -> int:
    """Which of the instances on this host this is."""
    return popdist.getLocalInstanceIndex()
