"""Functions of torch that need an argument so that shapes do not depend on values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from popple.errors import CaptureError

Check = Callable[..., None]


def _check_one_hot(tensor: Any, num_classes: Any = -1) -> None:
    if not isinstance(num_classes, int) or num_classes < 0:
        raise CaptureError(
            "OneHot num classes must be specified and must be constant.",
            remedy="Pass num_classes: shapes must be known before values are.",
        )


def _check_bincount(input: Any, weights: Any = None, minlength: Any = 0) -> None:
    if not isinstance(minlength, int) or minlength < 1:
        raise CaptureError(
            "bincount needs a constant minlength, one more than the largest value.",
            remedy="Pass minlength: shapes must be known before values are.",
        )


_CHECKS: dict[Any, Check] = {
    F.one_hot: _check_one_hot,
    torch.bincount: _check_bincount,
    torch.Tensor.bincount: _check_bincount,
}


class StaticShapes(TorchFunctionMode):
    """Refuses calls, while it is active, whose result has a shape only values know."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Look at the arguments of one function of torch and run it."""
        check = _CHECKS.get(func)
        if check is not None:
            check(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))
