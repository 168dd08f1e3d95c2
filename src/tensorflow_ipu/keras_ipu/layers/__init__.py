"""Layers for the IPU: those that keep gradients on their way back."""

import importlib
from typing import Any

from .capture_upstream_gradients import (
    CaptureActivationGradients,
    CaptureUpstreamGradients,
)

__all__ = ["CaptureActivationGradients", "CaptureUpstreamGradients"]

# Layers that lay here before they got a package of their own.
_ADDONS = "ipu_tensorflow_addons.keras.layers"


def __getattr__(name: str) -> Any:
    found = None
    if not name.startswith("_"):
        found = getattr(importlib.import_module(_ADDONS), name, None)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
