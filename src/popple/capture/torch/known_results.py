"""What operators return, known from earlier ones on tensors of the same form.

Layers repeat: most operators of a trace run on tensors with the shapes, strides and
types of an earlier call. What they return has a known form then, and is made here. To
have an operator find it out takes several times as long: it goes through PyTorch's
dispatcher and the caches of fake tensors.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    in_kernel_invocation_manager,
)
from torch.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    extract_val,
)


class Result(NamedTuple):
    """What an operator returned, and the same again for the node that it becomes.

    Both lie in the same memory; only the first is the program's, which may give it
    another form in place.
    """

    value: Any
    shown: Any


class _Form(NamedTuple):
    """The form of one result; a view lies in the memory of the first argument."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device
    is_view: bool


class _UnknownFormError(Exception):
    """What an operator takes or returns is not told by forms alone."""


class KnownResults:
    """Forms of results by operator and arguments, for the length of one trace."""

    def __init__(self) -> None:
        self._known: dict[Hashable, list[_Form | None]] = {}

    def run(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Result:
        """What an operator returns for tensors of the trace, off the record."""
        key = _find_key(func, args, kwargs)
        known = None if key is None else self._known.get(key)
        if known is not None:
            return _make(known, args[0], returns_one(func))
        with disable_proxy_modes_tracing():
            value = func(*args, **kwargs)
            result = Result(value, extract_val(value))
        if key is not None:
            parts = [value] if returns_one(func) else value
            with contextlib.suppress(_UnknownFormError):
                self._known[key] = [_form_of(part, func, args) for part in parts]
        return result


@functools.cache
def returns_one(func: OpOverload) -> bool:
    """Whether an operator returns a tensor rather than several."""
    returned = func._schema.returns
    return len(returned) == 1 and str(returned[0].type) == "Tensor"


@functools.cache
def _depends_on_forms(func: OpOverload) -> bool:
    """Whether an operator writes nothing and its results have a form known before."""
    named = func._schema.arguments
    writes = any(each.alias_info and each.alias_info.is_write for each in named)
    values = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
    # Strides that are out of bounds are found by the operator.
    is_bounded = func.overloadpacket is not torch.ops.aten.as_strided
    return is_bounded and not writes and values.isdisjoint(func.tags)


def _find_key(
    func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Hashable | None:
    """All that decides about the form of a result; None if that is not known."""
    if not args or type(args[0]) is not FakeTensor or not _depends_on_forms(func):
        return None
    try:
        named = tuple((name, _key(each)) for name, each in kwargs.items())
        given = tuple(map(_key, args))
    except _UnknownFormError:
        return None
    # Quotients of integers have the type that is the default.
    return func, args[0].fake_mode, torch.get_default_dtype(), given, named


def _key(value: Any) -> Hashable:
    if type(value) is FakeTensor:
        return _tensor_key(value)
    if type(value) in (list, tuple):
        return tuple(map(_key, value))
    # 1, 1.0 and True are equal, and make results of different types.
    return type(value), value


def _tensor_key(tensor: FakeTensor) -> Hashable:
    if tensor.constant is not None or not _is_plain(tensor):
        raise _UnknownFormError
    return (
        tensor.shape,
        tensor.stride(),
        tensor.storage_offset(),
        tensor.dtype,
        tensor.fake_device,
    )


def _is_plain(tensor: Tensor) -> bool:
    is_dense = tensor.layout is torch.strided and not tensor.is_quantized
    return is_dense and not (tensor.is_conj() or tensor.is_neg())


def _form_of(result: Any, func: OpOverload, args: Sequence[Any]) -> _Form | None:
    """The form of what an operator returned."""
    if result is None:
        return None
    if type(result) is not FakeTensor or not _is_plain(result):
        raise _UnknownFormError
    offset, is_view = int(result.storage_offset()), func.is_view
    memory = result.untyped_storage()
    # A result that is no view but lies in other memory, or in a part of its own.
    if is_view != (memory._cdata == args[0].untyped_storage()._cdata):
        raise _UnknownFormError
    shape, stride = tuple(map(int, result.shape)), result.stride()
    if not is_view and (offset or memory.nbytes() != _num_bytes(result)):
        raise _UnknownFormError
    return _Form(shape, stride, offset, result.dtype, result.fake_device, is_view)


def _num_bytes(tensor: Tensor) -> int:
    """What a tensor of this form takes in memory of its own."""
    if not tensor.numel():
        return 0
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * step for size, step in pairs)
    return (last + 1) * tensor.element_size()


def _make(known: Sequence[_Form | None], first: FakeTensor, is_one: bool) -> Result:
    """Tensors of these forms; views lie in the memory of the first argument."""
    mode = first.fake_mode
    with in_kernel_invocation_manager(mode):
        memory = [form and _memory(form, first) for form in known]
    values = [_fake(*pair, mode) for pair in zip(known, memory, strict=True)]
    shown = [_fake(*pair, mode) for pair in zip(known, memory, strict=True)]
    return Result(values[0], shown[0]) if is_one else Result(tuple(values), shown)


def _memory(form: _Form, first: FakeTensor) -> Tensor:
    if not form.is_view:
        return torch.empty_strided(
            form.shape, form.stride, dtype=form.dtype, device="meta"
        )
    made = torch.empty((), dtype=form.dtype, device="meta")
    return made.set_(first.untyped_storage(), form.offset, form.shape, form.stride)


def _fake(
    form: _Form | None, memory: Tensor | None, mode: FakeTensorMode
) -> FakeTensor | None:
    if form is None or memory is None:
        return None
    return FakeTensor(mode, memory, form.device)
