"""Run a module for a while with other parameters and buffers than its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn


@contextmanager
def swapped(module: nn.Module, state: Mapping[str, Tensor]) -> Iterator[None]:
    """The tensors of `state` stand for those of these names; tied ones follow.

    Each place of a tensor is changed once and put back once. torch.func.functional_call
    does so once per path, and leaves its own tensor behind in a layer that two modules
    share if another layer is tied to its weight.
    """
    new = {id(tensor_at(module, name)): tensor for name, tensor in state.items()}
    places = [
        (held, name, tensor)
        for part in module.modules()
        for held in _tensors_of(part)
        for name, tensor in held.items()
        if tensor is not None and id(tensor) in new
    ]
    for held, name, tensor in places:
        held[name] = new[id(tensor)]
    try:
        yield
    finally:
        for held, name, tensor in places:
            held[name] = tensor


def _tensors_of(part: nn.Module) -> tuple[dict[str, Any], ...]:
    return part._parameters, part._buffers


def tensor_at(module: nn.Module, path: str) -> Tensor | None:
    """The parameter or buffer at a dotted path; None if it is gone."""
    parent, _, name = path.rpartition(".")
    return getattr(module.get_submodule(parent), name, None)
