"""Programs of several instances, as PopDist numbers them."""

from .host_collective_ops import allgather, allreduce, broadcast

__all__ = ["allgather", "allreduce", "broadcast"]
