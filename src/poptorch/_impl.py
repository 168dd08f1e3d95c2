"""Private names of PopTorch that public programs reach for."""

from __future__ import annotations

from typing import Any

from torch import nn

from ._errors import Error
from ._executor import PoplarExecutor
from ._model.host_tensors import is_wrapped, resume, suspend, unwrap
from ._tracing.trace import isRunningOnIpu

__all__ = [
    "PoplarExecutor",
    "createPoptorchError",
    "isDispatchTracing",
    "isRunningOnIpu",
    "isWrapped",
    "rewrapModelIfNecessary",
    "unwrapIfWrapped",
    "unwrapModelIfNecessary",
]


def isDispatchTracing() -> bool:
    """Whether tensors can be made on a device called "ipu": they cannot.

    Tensors made while tracing are the trace's own wherever they are said to be.
    """
    return False


def createPoptorchError(msg: str) -> Error:
    """An Error with this message, to be raised."""
    return Error(msg)


def isWrapped(obj: object) -> bool:
    """Whether a module is wrapped for training."""
    return is_wrapped(obj)


def unwrapIfWrapped(obj: Any) -> Any:
    """The module with its plain classes, for good; other objects as they are."""
    if isinstance(obj, nn.Module):
        unwrap(obj)
    return obj


def unwrapModelIfNecessary(model: nn.Module) -> None:
    """Give a wrapped module its plain classes back, until it is wrapped again."""
    suspend(model)


def rewrapModelIfNecessary(model: nn.Module) -> None:
    """Wrap a module again that `unwrapModelIfNecessary` has unwrapped."""
    _restoreWrapperIfNecessary(model)


def _restoreWrapperIfNecessary(obj: Any) -> Any:
    """The object, wrapped again if it was before `unwrapModelIfNecessary`."""
    resume(obj)
    return obj
