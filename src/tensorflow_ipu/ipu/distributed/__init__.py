"""Programs of several instances, as PopDist numbers them.

`tensorflow.python.ipu.horovod` is the former name of this package.
"""

from .basics import (
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)
from .host_collective_ops import allgather, allreduce, broadcast

__all__ = [
    "allgather",
    "allreduce",
    "broadcast",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "shutdown",
    "size",
]
