"""What is different about torch inside forward while a model is traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torch.distributions import Distribution
from torch.nn.modules import transformer

from ._group_norm import StridedGroups
from ._host_tensors import HostTensors
from ._ipu_device import IpuDevice
from ._precision import WeightCasts
from ._refusals import Refusals, explained_errors
from ._static_forms import StaticForms

__all__ = ["trace_rules"]


@contextmanager
def trace_rules(has_strided_groups: bool = False) -> Iterator[None]:
    """Torch as it is on the device.

    With `has_strided_groups`, group normalisation strides over channels.
    """
    with ExitStack() as rules:
        rules.enter_context(explained_errors())
        rules.enter_context(_unchecked_distributions())
        rules.enter_context(_unread_masks())
        for mode in (Refusals, HostTensors, WeightCasts, IpuDevice, StaticForms):
            rules.enter_context(mode())
        if has_strided_groups:
            rules.enter_context(StridedGroups())
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


@contextmanager
def _unread_masks() -> Iterator[None]:
    """Transformers do not look for a causal mask by its values; they apply any."""
    original = transformer._detect_is_causal_mask

    def detect(
        mask: object, is_causal: bool | None = None, size: object = None
    ) -> bool:
        return is_causal is True

    transformer._detect_is_causal_mask = detect
    try:
        yield
    finally:
        transformer._detect_is_causal_mask = original
