"""The device called "ipu", as forward may name it: the one the model is traced on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["IpuDevice"]


class IpuDevice(TorchFunctionMode):
    """While active, functions of torch can be told to use "ipu"."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one function of torch."""
        kwargs = dict(kwargs or {})
        if _is_ipu(kwargs.get("device")):
            kwargs["device"] = torch.get_default_device()
        if func is Tensor.to:
            args = tuple(map(_traced_device, args))
        return func(*args, **kwargs)


def _is_ipu(device: object) -> bool:
    name = device.type if isinstance(device, torch.device) else device
    return isinstance(name, str) and name.partition(":")[0] == "ipu"


def _traced_device(argument: Any) -> Any:
    return torch.get_default_device() if _is_ipu(argument) else argument
