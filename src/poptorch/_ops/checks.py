"""Checks that the functions for use inside models share."""

from __future__ import annotations

from typing import Any

import torch

from .._errors import Error

__all__ = ["check_tensor"]


def check_tensor(value: Any, what: str) -> None:
    """Raise Error unless `value` is a tensor; `what` says whose argument it is."""
    if not isinstance(value, torch.Tensor):
        raise Error(f"{what} must be a torch.Tensor, not {type(value).__name__}.")
