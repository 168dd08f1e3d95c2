"""Backends: how the function of a Replay is executed.

    replay     straight-line Python over the framework's kernels (default)
    inductor   compiled by torch.compile into fused kernels of its own

On a GPU either one is captured into a CUDA graph, so that a step is one launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from popple.engine.torch.cuda_graphs import CudaGraph
from popple.engine.torch.replay import Replay
from popple.errors import UsageError, suggest

BACKENDS = ("replay", "inductor")
DEVICES = ("cpu", "cuda")


def with_backend(replay: Replay, backend: str, device: str, num_fixed: int) -> Replay:
    """The replay executed by `backend` on `device`.

    Its first `num_fixed` arguments, weights and buffers, keep their memory from call
    to call; the others are new data each time.
    """
    check_backend(backend, device)
    function: Callable[..., Any] = replay.function
    if backend == "inductor":
        function = torch.compile(function, fullgraph=True, dynamic=False)
    if device == "cuda":
        function = CudaGraph(function, num_fixed)
    return Replay(function, replay.shared_outputs)


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
