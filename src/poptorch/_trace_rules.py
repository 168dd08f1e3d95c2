"""What is different about torch inside forward while a model is traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.distributions import Distribution

from ._ipu_device import IpuDevice
from ._precision import WeightCasts
from ._refusals import Refusals, explained_errors

__all__ = ["trace_rules"]


@contextmanager
def trace_rules() -> Iterator[None]:
    """Torch as it is on the device."""
    with explained_errors(), Refusals(), WeightCasts(), IpuDevice():
        with _unchecked_distributions():
            yield


@contextmanager
def _unchecked_distributions() -> Iterator[None]:
    """Distributions do not look at the values of their parameters."""
    checked = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(checked)
