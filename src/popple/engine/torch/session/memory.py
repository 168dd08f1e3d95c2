"""Device memory of a session: copies of weights and buffers, to and from the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from popple.engine.torch.backends import Backend
from popple.engine.torch.copies import copy_of
from popple.engine.torch.run import DeviceMemory
from popple.engine.torch.session.groups import GroupedMemory, Groupings


def host_tensors(module: nn.Module) -> tuple[dict[str, torch.Tensor], ...]:
    """The host's parameters and buffers as plain tensors that share their memory."""
    return _detached(module.named_parameters()), _detached(module.named_buffers())


def _detached(named: Iterable[tuple[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    # Front ends may wrap parameters in a tensor subclass that watches their use.
    with torch._C.DisableTorchFunctionSubclass():
        return {name: tensor.detach() for name, tensor in named}


def load_device(
    module: nn.Module,
    memory: DeviceMemory | None,
    num_buffer_sets: int,
    backend: Backend,
    groupings: Groupings,
    first_replica: int = 0,
) -> DeviceMemory:
    """Copy the host's tensors to the device; keeps the optimiser state there is."""
    weights, buffers = host_tensors(module)
    for name, grouping in groupings.items():
        weights[name] = grouping.to_device(weights[name])
    if memory is None:
        sets = [_copies(buffers, backend) for _ in range(num_buffer_sets)]
        held = _copies(weights, backend)
        if not groupings:
            return DeviceMemory(held, sets)
        return GroupedMemory(held, sets, groupings=groupings, first=first_replica)
    # In place: captured CUDA graphs hold the addresses of these tensors.
    _overwrite(memory.weights, weights)
    for held in memory.buffers:
        _overwrite(held, buffers)
    return memory


def read_device(memory: DeviceMemory, module: nn.Module) -> None:
    """Copy the device's tensors to the host. Integer buffers are constants there."""
    weights, buffers = host_tensors(module)
    held = dict(memory.weights)
    if isinstance(memory, GroupedMemory):
        for name, grouping in memory.groupings.items():
            held[name] = grouping.to_host(held[name])
    _overwrite(weights, held)
    floats = {n: t for n, t in buffers.items() if t.is_floating_point()}
    # Replicas may have buffers of their own; the host is given those of the first.
    _overwrite(floats, memory.buffers[0])


def _copies(
    tensors: Mapping[str, torch.Tensor], backend: Backend
) -> dict[str, torch.Tensor]:
    return {name: _copy(tensor, backend) for name, tensor in tensors.items()}


def _copy(tensor: torch.Tensor, backend: Backend) -> torch.Tensor:
    placed = backend.place(backend.typed(tensor))
    return copy_of(tensor) if placed is tensor else placed


@torch.no_grad()
def _overwrite(
    target: Mapping[str, torch.Tensor], source: Mapping[str, torch.Tensor]
) -> None:
    for name, tensor in target.items():
        tensor.copy_(source[name])
