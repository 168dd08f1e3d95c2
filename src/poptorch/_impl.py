"""Private names of PopTorch that public programs reach for."""

from __future__ import annotations

__all__ = ["isDispatchTracing"]


def isDispatchTracing() -> bool:
    """Whether tensors can be made on a device called "ipu": they cannot.

    Tensors made while tracing are the trace's own wherever they are said to be.
    """
    return False
