"""Refusals: functions and values that forward may not use while traced, with errors.

Shapes and the path through the program are fixed when a model is compiled, so nothing
may depend on the value of a tensor. Tensors that forward makes lie on the device if a
function of torch makes them (`torch.tensor`, `torch.zeros`); those made by their class
(`torch.LongTensor([1, 0])`, `from_numpy`) lie on the host and must be moved before they
meet others, by `to(x.device)`. Errors of PyTorch itself pass through as they are.
Front ends catch the classes below and add what their users can do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)

from popple.capture.torch.tags import failing_line
from popple.errors import CaptureError

__all__ = [
    "DynamicShape",
    "Unsupported",
    "ValueNeeded",
    "check_side",
    "check_supported",
    "explained_errors",
    "note_side",
]

_INTERPOLATIONS = ("linear", "trilinear")

# What a tensor with given values passes through when it is made. Functions of torch
# run out of our sight, so this is only seen of tensors that are made otherwise.
_MADE = {torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default}
# Functions that move values from the host.
_MOVES = {Tensor.to, Tensor.cuda, Tensor.type_as, Tensor.copy_, Tensor.__setitem__}
_FLAG = "_is_on_host"

_NAMES = {
    torch.float64: "Double",
    torch.float32: "Float",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}


class Unsupported(CaptureError):
    """A function of torch that the device lacks, or lacks in this form."""


class ValueNeeded(CaptureError):
    """forward asks for the value of a tensor; while tracing there are none."""


class DynamicShape(CaptureError):
    """An operator's result has a shape that only values decide."""

    def __init__(self, what: str, func: Any, *, where: str, remedy: str) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.func = func


def check_supported(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Unsupported, if the device cannot do what a function of torch is asked for."""
    check = _CHECKS.get(func)
    if check is not None:
        check(*args, **kwargs)


def _check_interpolation(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    *_: Any,
    **__: Any,
) -> None:
    if mode in _INTERPOLATIONS:
        raise Unsupported(
            f"Upsampling in mode {mode!r} is not supported: in one and three "
            "dimensions only 'nearest' is supported, in two also 'bilinear' and "
            "'bicubic'."
        )


def _check_one_hot(tensor: Any, num_classes: Any = -1) -> None:
    if not isinstance(num_classes, int) or num_classes < 0:
        raise Unsupported(
            "OneHot num classes must be specified and must be constant.",
            remedy="Pass num_classes: shapes must be known before values are.",
        )


def _check_bincount(input: Any, weights: Any = None, minlength: Any = 0) -> None:
    if not isinstance(minlength, int) or minlength < 1:
        raise Unsupported(
            "bincount needs a constant minlength, one more than the largest value can "
            "be: shapes must be known before values are."
        )


def _check_sparse(*_: Any, **__: Any) -> None:
    raise Unsupported(
        "There are no sparse tensors on the device: their shapes depend on values.",
        remedy="Keep the tensor dense, or pass indices and values as two tensors.",
    )


_CHECKS: dict[Any, Callable[..., None]] = {
    **dict.fromkeys(
        (
            torch.Tensor.to_sparse,
            torch.Tensor.to_sparse_bsc,
            torch.Tensor.to_sparse_bsr,
            torch.Tensor.to_sparse_csc,
            torch.Tensor.to_sparse_csr,
            torch.sparse_compressed_tensor,
            torch.sparse_coo_tensor,
            torch.sparse_csr_tensor,
        ),
        _check_sparse,
    ),
    F.interpolate: _check_interpolation,
    F.one_hot: _check_one_hot,
    torch.bincount: _check_bincount,
    torch.Tensor.bincount: _check_bincount,
}


def note_side(func: Callable[..., Any], result: Any) -> None:
    """Remember of a tensor that was just made or moved on which side it lies."""
    is_move = func in _MOVES
    if isinstance(result, Tensor) and (is_move or func in _MADE):
        setattr(result, _FLAG, not is_move)


def check_side(func: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Refuse an operator on tensors from both sides, unless it moves them."""
    if func in _MOVES:
        return
    leaves = pytree.tree_leaves((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    strays = [tensor for tensor in tensors if getattr(tensor, _FLAG, False)]
    if not strays or len(strays) == len(tensors):
        return
    stray = strays[0]
    dtype = _NAMES.get(stray.dtype, str(stray.dtype))
    raise CaptureError(
        "Expected an IPU tensor but got tensor(device=cpu, "
        f"shape={list(stray.shape)}, dtype={dtype}). Make it with torch.tensor, or "
        "move it to the device of the others."
    )


@contextmanager
def explained_errors() -> Iterator[None]:
    """Errors of tracing itself, told in terms of the user's program."""
    try:
        yield
    except DynamicOutputShapeException as error:
        raise DynamicShape(
            f"{error.func} gives a tensor whose shape depends on values, but shapes "
            "are fixed when a model is compiled.",
            error.func,
            where=failing_line(error),
            remedy="Use an operator of fixed shape, such as torch.where with three "
            "arguments.",
        ) from error
    except DataDependentOutputException as error:
        raise ValueNeeded(
            "forward asks for the value of a tensor, but there are none while a model "
            "is compiled.",
            where=failing_line(error),
            remedy="Use torch.where instead of Python's control flow, and no item(), "
            "tolist() or float().",
        ) from error
    except TypeError as error:
        # The tensors of a trace are of a class that users need not know.
        error.args = tuple(map(_without_trace_names, error.args))
        raise


def _without_trace_names(argument: Any) -> Any:
    if not isinstance(argument, str):
        return argument
    return argument.replace("FakeTensor", "Tensor")
