"""DeviceRules: the mode that applies all rules to functions of torch in forward.

    forms      take the place of some functions
    "ipu"      names the device that the model is traced on
    refusals   raise for what the device lacks
    casts      bring the operands of a layer into one element type
    indices    are widened to the type that PyTorch wants
    hosts      are told apart: tensors that forward made there, not on the device

Rules are steps of one mode rather than modes of their own: a mode on a stack of five is
entered and left five times for every function of torch.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.modules import transformer
from torch.overrides import TorchFunctionMode

from popple.capture.torch.ctc import ctc_loss
from popple.capture.torch.recurrent import FORMS as RECURRENT_FORMS
from popple.capture.torch.rules.group_norm import STRIDED_FORMS
from popple.capture.torch.rules.index_types import INDEXED, with_wide_indices
from popple.capture.torch.rules.refusals import (
    check_side,
    check_supported,
    note_side,
)
from popple.capture.torch.rules.static_forms import STATIC_FORMS
from popple.capture.torch.rules.weight_casts import (
    LAYERS,
    STATISTICS,
    is_mixed,
    normalise,
    with_one_type,
)

Function = Callable[..., Any]
# Modules of PyTorch that only pass on whether something is being compiled.
_SAME_QUESTION = ("torch._dynamo.external_utils", "torch._utils")

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@contextmanager
def device_rules(has_strided_groups: bool = False) -> Iterator[None]:
    """Torch as it is on the device.

    With `has_strided_groups`, group normalisation strides over channels.
    """
    forms = {
        **STATIC_FORMS,
        **RECURRENT_FORMS,
        F.ctc_loss: ctc_loss,
        **(STRIDED_FORMS if has_strided_groups else {}),
    }
    unread = _unchecked_distributions(), _unread_masks(), _told_of_compiling()
    with ExitStack() as stack:
        for context in (*unread, DeviceRules(forms)):
            stack.enter_context(context)
        yield


class DeviceRules(TorchFunctionMode):
    """While active, functions of torch do what they do on the device."""

    def __init__(self, forms: Mapping[Function, Function]) -> None:
        super().__init__()
        self._forms = forms

    def __torch_function__(
        self,
        func: Function,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one function of torch, or our form of it."""
        kwargs = kwargs or {}
        if (form := self._forms.get(func)) is not None:
            # A mode is not active inside itself, and what a form calls must follow
            # the other rules; it may call the function that it stands for.
            with DeviceRules({}):
                return form(*args, **kwargs)
        args, kwargs = _on_traced_device(func, args, kwargs)
        # Before any cast, which would hide on which side a tensor was made.
        check_side(func, args, kwargs)
        check_supported(func, args, kwargs)
        if func in STATISTICS and is_mixed((args, kwargs)):
            return normalise(func, args, kwargs)
        if func in LAYERS:
            args, kwargs = with_one_type(args, kwargs, LAYERS[func])
        elif func in INDEXED:
            args, kwargs = with_wide_indices(func, args, kwargs)
        result = func(*args, **kwargs)
        note_side(func, result)
        return result


def _on_traced_device(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    """The arguments with the device called "ipu" as the one the model is traced on."""
    if _is_ipu(kwargs.get("device")):
        kwargs = {**kwargs, "device": torch.get_default_device()}
    if func is Tensor.to:
        args = tuple(torch.get_default_device() if _is_ipu(a) else a for a in args)
    return args, kwargs


def _is_ipu(device: object) -> bool:
    name = device.type if isinstance(device, torch.device) else device
    return isinstance(name, str) and name.partition(":")[0] == "ipu"


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


@contextmanager
def _told_of_compiling() -> Iterator[None]:
    """Programs that ask are told that they are compiled, so they look at no values.

    Libraries of transformers leave out a mask of ones if they can see that it is one,
    unless `torch.compiler.is_compiling()`. PyTorch and torch_geometric ask as well,
    whether dynamo is at work: they would leave out hooks, and choose other operators.
    """
    stock = torch.compiler.is_compiling
    thread = threading.get_ident()  # others run as always

    def is_compiling() -> bool:
        if stock() or threading.get_ident() != thread:
            return stock()
        return _asking_package() not in ("torch", "torch_geometric")

    torch.compiler.is_compiling = is_compiling
    try:
        yield
    finally:
        torch.compiler.is_compiling = stock


def _asking_package() -> str:
    """The package whose code asks, also through other names of the same question."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _SAME_QUESTION:
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "") if frame is not None else ""
    return str(name).partition(".")[0]
