"""`horovod.torch` between the instances of a job: tensors are shared on the host.

Names and defaults are Horovod's. All instances must make the same calls in the same
order; results are new tensors, but for functions whose names end with `_`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from popple.distributed import get_instance
from popple.engine.torch.peers import Peers, connect_peers
from popple.errors import UsageError

__all__ = [
    "Average",
    "Max",
    "Min",
    "Sum",
    "allgather",
    "allreduce",
    "allreduce_",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_parameters",
    "grouped_allreduce",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "shutdown",
    "size",
]

Average, Sum, Min, Max = "Average", "Sum", "Min", "Max"


class _Job:
    """The connection to the other instances, from `init` to `shutdown`."""

    peers: Peers | None = None


def init(*args: Any, **kwargs: Any) -> None:
    """Connect to the other instances; arguments choose among them and are ignored."""
    instance = get_instance()
    try:
        _Job.peers = connect_peers(instance.index, instance.count)
    except UsageError as error:
        raise RuntimeError(str(error)) from error


def shutdown() -> None:
    """Forget the other instances."""
    _Job.peers = None


def is_initialized() -> bool:
    """Whether `init` has been called."""
    return _Job.peers is not None


def _peers() -> Peers:
    if _Job.peers is None:
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    return _Job.peers


def size() -> int:
    """How many instances there are."""
    return _peers().count


def rank() -> int:
    """Number of this instance."""
    return _peers().index


def local_size() -> int:
    """How many instances this host has."""
    _peers()
    return get_instance().local_count


def local_rank() -> int:
    """Number of this instance among those of its host."""
    _peers()
    return get_instance().local_index


def allreduce(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: object = None,
    op: str | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """The mean of the tensors of all instances, or their sum, least or largest."""
    chosen = _operation(average, op)
    (result,) = _reduce([_scaled(tensor, prescale_factor)], chosen)
    return _scaled(result, postscale_factor)


def allreduce_(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The same as `allreduce`, written to the tensor itself."""
    return tensor.copy_(allreduce(tensor, *args, **kwargs))


def grouped_allreduce(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: object = None,
    op: str | None = None,
) -> list[Tensor]:
    """`allreduce` of several tensors at once."""
    return _reduce(list(tensors), _operation(average, op))


def allgather(tensor: Tensor, name: str | None = None) -> Tensor:
    """The tensors of all instances, joined along their first dimension."""
    return torch.cat(_peers().gather(tensor))


def broadcast(tensor: Tensor, root_rank: int, name: str | None = None) -> Tensor:
    """The tensor of instance `root_rank`."""
    return broadcast_(tensor.detach().clone(), root_rank, name)


def broadcast_(tensor: Tensor, root_rank: int, name: str | None = None) -> Tensor:
    """Overwrite the tensor with that of instance `root_rank`."""
    with torch.no_grad():
        _peers().send_all([tensor], root_rank)
    return tensor


def broadcast_parameters(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]], root_rank: int
) -> None:
    """Overwrite all tensors of a `state_dict()` or of `named_parameters()`."""
    named = params.items() if isinstance(params, Mapping) else params
    for _, value in named:
        if isinstance(value, Tensor):
            broadcast_(value, root_rank)


def barrier() -> None:
    """Wait until all instances are here."""
    _peers().wait()


def _operation(average: bool | None, op: str | None) -> str:
    if average is not None and op is not None:
        raise ValueError("The op parameter supersedes average. Give one of them.")
    if average is not None:
        return Average if average else Sum
    return op or Average


def _reduce(tensors: list[Tensor], op: str) -> list[Tensor]:
    if op in (Min, Max):
        return [_extreme(tensor, op) for tensor in tensors]
    results = [tensor.detach().clone() for tensor in tensors]
    _peers().add_up(results)
    return [_divided(r, size()) for r in results] if op == Average else results


def _extreme(tensor: Tensor, op: str) -> Tensor:
    choose: Callable[[Tensor, Tensor], Tensor]
    choose = torch.minimum if op == Min else torch.maximum
    parts = _peers().gather(tensor.detach().reshape(1, *tensor.shape))
    return functools.reduce(choose, [part[0] for part in parts])


def _divided(tensor: Tensor, count: int) -> Tensor:
    """A mean keeps the type of its tensor, whole numbers too."""
    return tensor.div(count).to(tensor.dtype)


def _scaled(tensor: Tensor, factor: float) -> Tensor:
    return tensor if factor == 1.0 else tensor * factor
