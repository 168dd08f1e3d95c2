"""The user's module once it is wrapped for training.

The device holds the weights; the host's copies are refreshed when someone reads them.
So parameters and buffers change their class to one that asks the executor first, and
the module's class becomes `Poptorch<Class>`. Unwrapping restores all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.utils._pytree as pytree
from torch import nn

from .._errors import Error

__all__ = [
    "OWN_ATTRIBUTES",
    "PoptorchBuffer",
    "PoptorchParameter",
    "is_wrapped",
    "linked_executor",
    "plain_class",
    "resume",
    "suspend",
    "unwrap",
    "wrap",
]

_LINK = "_poptorch_link"
_PLAIN_CLASS = "_poptorch_plain_class"

OWN_ATTRIBUTES = frozenset({_LINK})
"""Attributes that wrapping adds to a module."""


class HostLink:
    """What wrapped tensors know of their executor: how to refresh the host."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.is_refreshing = False

    def refresh(self) -> None:
        """Copy weights from the device if the host's are out of date."""
        if self.is_refreshing:
            return
        self.is_refreshing = True
        try:
            self.executor.copyWeightsToHostIfNeeded()
        finally:
            self.is_refreshing = False


def _refreshed_function(
    cls: type,
    func: Callable[..., Any],
    types: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Refresh the host, then run the function on plain tensors."""
    with torch._C.DisableTorchFunctionSubclass():
        for leaf in pytree.tree_leaves((args, kwargs)):
            if isinstance(leaf, PoptorchParameter | PoptorchBuffer):
                getattr(leaf, _LINK).refresh()
        return func(*args, **(kwargs or {}))


# Both have one base, the plain class: wrappers of PopTorch take `__bases__[0]` to
# unwrap a tensor by hand.
class PoptorchParameter(nn.Parameter):
    """A parameter whose newest value is on the device."""

    __torch_function__ = classmethod(_refreshed_function)  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Parameter:
        copied = self.detach().clone(memory_format=torch.preserve_format)
        result = nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return nn.Parameter(self.detach(), self.requires_grad).__reduce_ex__(protocol)


class PoptorchBuffer(torch.Tensor):
    """A buffer whose newest value is on the device."""

    __torch_function__ = classmethod(_refreshed_function)  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        result = self.detach().clone(memory_format=torch.preserve_format)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.detach().__reduce_ex__(protocol)


def wrap(module: nn.Module, executor: Any) -> None:
    """Turn a module into its wrapped form, in place."""
    if is_wrapped(module):
        raise RuntimeError(
            "This model is already wrapped by a poptorch training model. Call "
            "destroy() on that one first, or wrap another instance."
        )
    for name, buffer in module.named_buffers():
        if type(buffer) not in (torch.Tensor, PoptorchBuffer):
            raise Error(
                f"Buffer {name} has the class {type(buffer).__name__}; only plain "
                "torch.Tensor buffers can live on the device."
            )
    _wrap_with(module, HostLink(executor))


def _wrap_with(module: nn.Module, link: HostLink) -> None:
    _set_classes(module.parameters(), nn.Parameter, PoptorchParameter, link)
    _set_classes(module.buffers(), torch.Tensor, PoptorchBuffer, link)
    module.__class__ = _wrapped_class(type(module))
    module.__dict__[_LINK] = link


def unwrap(module: nn.Module) -> None:
    """Undo `wrap`; no effect on a module that is not wrapped."""
    if not is_wrapped(module):
        return
    module.__dict__.pop(_LINK, None)
    module.__class__ = getattr(type(module), _PLAIN_CLASS)
    _set_classes(module.parameters(), PoptorchParameter, nn.Parameter, None)
    _set_classes(module.buffers(), PoptorchBuffer, torch.Tensor, None)


# Unwrapped for a while. A module must not lead to its executor when it is pickled.
_SUSPENDED: WeakKeyDictionary[nn.Module, HostLink] = WeakKeyDictionary()


def suspend(module: nn.Module) -> None:
    """Unwrap until `resume`; no effect on a module that is not wrapped."""
    link = module.__dict__.get(_LINK)
    if link is not None:
        link.refresh()
        unwrap(module)
        _SUSPENDED[module] = link


def resume(module: nn.Module) -> None:
    """Wrap a suspended module again; no effect on others."""
    link = _SUSPENDED.pop(module, None)
    if link is not None:
        _wrap_with(module, link)


def is_wrapped(module: object) -> bool:
    """Whether the module is wrapped for training."""
    return hasattr(type(module), _PLAIN_CLASS)


def plain_class(cls: type) -> type:
    """The user's class of a wrapped module; other classes themselves."""
    return getattr(cls, _PLAIN_CLASS, cls)


def linked_executor(module: nn.Module) -> Any:
    """The executor that trains this module, or None if it is not wrapped."""
    link = module.__dict__.get(_LINK)
    return None if link is None else link.executor


def _set_classes(
    tensors: Iterable[torch.Tensor], old: type, new: type, link: HostLink | None
) -> None:
    with torch._C.DisableTorchFunctionSubclass():
        for tensor in tensors:
            if type(tensor) is old:
                tensor.__class__ = new
                attributes = vars(tensor)
                attributes.pop(_LINK, None)
                attributes |= {_LINK: link} if link else {}


def _wrapped_class(plain: type[nn.Module]) -> type[nn.Module]:
    """A subclass of the user's class that answers for the device's weights.

    Copies stay wrapped; deep copies and pickles are of the plain class.
    """

    def copy(self: Any) -> Any:
        duplicate = self.__class__.__new__(self.__class__)
        duplicate.__dict__.update(self.__dict__)
        for name in ("_parameters", "_buffers", "_modules"):
            duplicate.__dict__[name] = self.__dict__[name].copy()
        return duplicate

    def reduce(self: Any, protocol: Any) -> Any:
        reduced: Any = plain.__reduce_ex__(self, protocol)
        _, (_, *arguments), state, *rest = reduced
        state = {key: value for key, value in state.items() if key != _LINK}
        return (plain.__new__, (plain, *arguments), state, *rest)

    def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = plain.state_dict(self, *args, **kwargs)
        for name, value in result.items():
            if isinstance(value, torch.Tensor) and not kwargs.get("keep_vars"):
                result[name] = value.detach().clone()
        return result

    def refresh(self: Any) -> bool:
        return linked_executor(self).copyWeightsToHostIfNeeded()

    def destroy(self: Any) -> None:
        linked_executor(self).destroy()

    methods = {
        "__copy__": copy,
        "__reduce_ex__": reduce,
        "__module__": plain.__module__,
        _PLAIN_CLASS: plain,
        "copyWeightsToHostIfNeeded": refresh,
        "destroy": destroy,
        "state_dict": state_dict,
    }
    return type(f"Poptorch{plain.__name__}", (plain,), methods)
