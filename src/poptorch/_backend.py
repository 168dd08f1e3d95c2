"""Where and how the values of a program are computed.

`popple run --backend NAME --device NAME` says it, through POPPLE_BACKEND and
POPPLE_DEVICE; by default traced steps are replayed on the CPU.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from popple.engine.torch import check_backend

__all__ = ["REPLAY", "Backend", "chosen_backend"]


@dataclass(frozen=True)
class Backend:
    """A way to execute steps, and the computer's device they run on."""

    name: str = "replay"
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_backend(self.name, self.device)

    @property
    def is_default(self) -> bool:
        """Whether steps are replayed on the CPU."""
        return (self.name, self.device) == ("replay", "cpu")

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor where steps run."""
        return tensor if self.device == "cpu" else tensor.to(self.device)

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """A context to trace in: tensors are made where steps run."""
        if self.device == "cpu":
            yield
            return
        # cuDNN's recurrent layers lay their weights out anew, which a trace that
        # exchanges weights cannot do; PyTorch's own ones need no such thing.
        with torch.device(self.device), torch.backends.cudnn.flags(enabled=False):
            yield


REPLAY = Backend()
"""Replay on the CPU."""


def chosen_backend() -> Backend:
    """What the environment asks for."""
    return Backend(
        os.environ.get("POPPLE_BACKEND") or "replay",
        os.environ.get("POPPLE_DEVICE") or "cpu",
    )
