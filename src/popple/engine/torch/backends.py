"""Backends: how the function of a Replay is made.

    replay     straight-line Python over the framework's kernels (default)
    inductor   compiled by torch.compile into fused kernels of its own

On a GPU the step of either one is captured into a CUDA graph (`cuda_graphs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from popple.engine.torch.replay import MakeFunction
from popple.errors import UsageError, suggest

BACKENDS = ("replay", "inductor")
DEVICES = ("cpu", "cuda")


def function_maker(backend: str) -> MakeFunction | None:
    """What makes functions of graphs for this backend; None for Replay's own way."""
    return _compiled if backend == "inductor" else None


def _compiled(module: GraphModule) -> Callable[..., Sequence[Any]]:
    return torch.compile(module.forward, fullgraph=True, dynamic=False)


def check_backend(backend: str, device: str) -> None:
    """UsageError if there is no such backend or device here."""
    if backend not in BACKENDS:
        raise UsageError(
            f"there is no backend {backend!r}.", remedy=suggest(backend, BACKENDS)
        )
    if device not in DEVICES:
        raise UsageError(
            f"there is no device {device!r}.", remedy=suggest(device, DEVICES)
        )
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "PyTorch finds no GPU on this computer.",
            remedy="Use --device cpu, or install a PyTorch built for your GPU.",
        )
