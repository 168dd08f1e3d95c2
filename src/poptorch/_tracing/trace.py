"""Whether a model is being traced, and how functions inside it reach the tracer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from .blocks import active_trace

if TYPE_CHECKING:
    from popple.capture.torch import ActiveTrace

__all__ = ["find_trace", "isRunningOnIpu", "mark_loss", "untraced"]


@contextmanager
def untraced() -> Iterator[None]:
    """While inside, no tracer is seen: the CPU runs what follows."""
    token = active_trace.set(None)
    try:
        yield
    finally:
        active_trace.reset(token)


def find_trace() -> ActiveTrace | None:
    """The trace under way, or None on the CPU."""
    places: Any = active_trace.get()
    return None if places is None else places.trace


def isRunningOnIpu() -> bool:
    """Whether the model is being traced for the IPU rather than run on the CPU."""
    return active_trace.get() is not None


def mark_loss(loss: torch.Tensor) -> None:
    """Announce a loss to the tracer, if one is at work."""
    trace = find_trace()
    if trace is not None:
        trace.mark_loss(loss)
