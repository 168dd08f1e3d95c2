"""The other processes of a job: how this one finds them, and joins their cluster."""

from __future__ import annotations

import socket

from popple.distributed import connect_store, get_instance
from popple.engine.tensorflow import processes
from popple.errors import UsageError

__all__ = ["check_joined", "join"]

_SECONDS_TO_ARRIVE = 600.0


def join() -> None:
    """Join the cluster of the job, if a launcher started this process as one of many.

    Waits until all of them have come this far.
    """
    instance = get_instance()
    # An offline job compiles: its processes have nothing to tell each other.
    if instance.count == 1 or not instance.store or instance.is_offline:
        return
    store = connect_store(instance)
    address = f"{store.own_host}:{_find_port(store.own_host)}"
    store.put(_key(instance.index), address)
    keys = (_key(index) for index in range(instance.count))
    addresses = [store.get(key, _SECONDS_TO_ARRIVE) for key in keys]
    processes.join(addresses, instance.index)


def check_joined(what: str) -> None:
    """Refuse to talk to other processes where there is no way to them."""
    count = get_instance().count
    if count > 1 and not processes.is_joined():
        raise UsageError(
            f"{what} with {count} instances: this process has not met the others.",
            where="POPDIST_NUM_TOTAL_REPLICAS / POPDIST_NUM_LOCAL_REPLICAS",
            remedy="Start the program with poprun, which starts all of them.",
        )


def _key(index: int) -> str:
    return f"tensorflow.{index}"


def _find_port(host: str) -> int:
    """A port that is free now; TensorFlow's server takes it a moment later."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]
