"""Losses, which are layers of ipu_tensorflow_addons today."""

from typing import TYPE_CHECKING, Any

from .. import layers as _layers

__all__ = ["CTCLoss"]

if TYPE_CHECKING:
    CTCLoss: Any


def __getattr__(name: str) -> Any:
    if name != "CTCLoss":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _layers.CTCLoss  # which finds it there
