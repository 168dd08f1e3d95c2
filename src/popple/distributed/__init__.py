"""Programs of several processes: which one this is, and how they are launched.

    instance   the POPDIST_* variables of a process as a record
    store      a table of texts that the processes of a job share, kept by the launcher
    options    the options of `poprun`, and files of them
    hosts      lists of hosts
    layout     which instance runs where, with which variables
    agent      runs on every host beside each instance: starts, watches and ends it
    output     lines of many processes as one text
    launcher   starts the agents, waits, and stops the job when one instance fails

Nothing here knows a framework. What processes compute together is the engines' part:
`popple.engine.torch.peers` adds tensors over processes, and finds the others through
the store.
"""

from popple.distributed.instance import Instance, find_instance, get_instance
from popple.distributed.store import StoreClient, connect_store

__all__ = [
    "Instance",
    "StoreClient",
    "connect_store",
    "find_instance",
    "get_instance",
]
