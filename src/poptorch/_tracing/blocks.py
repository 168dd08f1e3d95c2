"""Blocks: the user's marks of which part of the model runs where.

Blocks speak to whoever traces the model through `active_trace`: an object with
`set_block` and `clear_block`. When nobody traces, blocks have no effect, so a model
with blocks also runs on the CPU.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, TypeVar

import torch

from .._errors import Error, check

__all__ = [
    "BeginBlock",
    "Block",
    "BlockFunction",
    "BlockTrace",
    "LegacyBeginBlockFn",
    "active_trace",
    "marked_blocks",
    "removeBlocks",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class BlockTrace(Protocol):
    """What a tracer offers to blocks: the place of all ops that follow."""

    def set_block(self, user_id: str, ipu_id: int | None) -> None:
        """Ops from here on belong to block `user_id`."""
        ...

    def clear_block(self) -> None:
        """Ops from here on belong to no block."""
        ...


active_trace: ContextVar[BlockTrace | None] = ContextVar("active_trace", default=None)
"""The tracer at work, or None on the CPU."""

_auto_ids: ContextVar[tuple[BlockTrace | None, int]] = ContextVar(
    "auto_ids", default=(None, 0)
)
"""The tracer that last numbered a block and the next number: each trace from 0."""


def _next_auto_id(trace: BlockTrace) -> str:
    owner, number = _auto_ids.get()
    if owner is not trace:
        number = 0
    _auto_ids.set((trace, number + 1))
    return str(number)


def _named(trace: BlockTrace, user_id: str | None) -> str:
    return str(user_id) if user_id else _next_auto_id(trace)


class Block(torch.nn.Module):
    """A part of the model: `with Block("encoder", ipu_id=1): ...`.

    Leaving the `with` ends the block and does not go back to an outer one: what
    follows must be in a block of its own.
    """

    def __init__(self, user_id: str | None = None, ipu_id: int | None = None) -> None:
        super().__init__()
        self._user_id = user_id
        self._ipu_id = ipu_id

    @staticmethod
    def useAutoId() -> None:
        """Number blocks without a name from "0" again; call it first in forward."""
        trace = active_trace.get()
        if trace is not None:
            _auto_ids.set((trace, 0))

    @staticmethod
    def start(user_id: str | None = None, ipu_id: int | None = None) -> None:
        """Begin a block that lasts until the next one begins."""
        trace = active_trace.get()
        if trace is not None:
            trace.set_block(_named(trace, user_id), ipu_id)

    def __enter__(self) -> None:
        Block.start(self._user_id, self._ipu_id)

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        trace = active_trace.get()
        if trace is not None:
            trace.clear_block()


class _BlockMark:
    """Begins a block each time it is called; keeps the number it was once given."""

    def __init__(self, user_id: str | None, ipu_id: int | None) -> None:
        self._user_id = user_id
        self._ipu_id = ipu_id

    def begin(self) -> None:
        trace = active_trace.get()
        if trace is not None:
            self._user_id = _named(trace, self._user_id)
            trace.set_block(self._user_id, self._ipu_id)


class _BlockHook(_BlockMark):
    """Forward-pre-hook that begins a block before its module runs."""

    def __call__(self, module: torch.nn.Module, input: Any) -> None:
        self.begin()

    def __repr__(self) -> str:
        return f"BeginBlock(user_id={self._user_id}, ipu_id={self._ipu_id})"


class LegacyBeginBlockFn(torch.nn.Module):
    """A plain callable that begins a block before it runs."""

    def __init__(
        self,
        layer_to_call: Callable[..., Any],
        user_id: str | None = None,
        ipu_id: int | None = None,
    ) -> None:
        super().__init__()
        self._layer_to_call = layer_to_call
        self._mark = _BlockMark(user_id, ipu_id)

    @property
    def _user_id(self) -> str | None:
        return self._mark._user_id

    @property
    def _ipu_id(self) -> int | None:
        return self._mark._ipu_id

    def __call__(self, *input: Any, **kwargs: Any) -> Any:
        self._mark.begin()
        return self._layer_to_call(*input, **kwargs)


def BeginBlock(
    layer_to_call: Any, user_id: str | None = None, ipu_id: int | None = None
) -> Any:
    """Let a block begin where a module is called; returns the module.

    The block lasts until another begins. A callable that is no module is wrapped.
    """
    if not isinstance(layer_to_call, torch.nn.Module):
        if not callable(layer_to_call):
            raise Error(
                "BeginBlock takes a torch.nn.Module or a function, not "
                f"{type(layer_to_call).__name__}."
            )
        return LegacyBeginBlockFn(layer_to_call, user_id, ipu_id)
    if any(_is_block_hook(hook) for hook in layer_to_call._forward_pre_hooks.values()):
        raise Error(
            "module has already been assigned to a block. Call poptorch.removeBlocks("
            "module) before assigning it again."
        )
    layer_to_call.register_forward_pre_hook(_BlockHook(user_id, ipu_id))
    return layer_to_call


def removeBlocks(module: torch.nn.Module) -> None:
    """Take all `BeginBlock` marks off `module` and its sub-modules."""
    check(
        isinstance(module, torch.nn.Module),
        f"removeBlocks takes a torch.nn.Module, not {type(module).__name__}.",
    )
    for part in module.modules():
        hooks = part._forward_pre_hooks.items()
        part._forward_pre_hooks = OrderedDict(
            (key, hook) for key, hook in hooks if not _is_block_hook(hook)
        )


def marked_blocks(module: torch.nn.Module) -> list[tuple[str | None, int | None]]:
    """Name and IPU of all blocks that `BeginBlock` marked in `module`."""
    hooks = (
        hook
        for part in module.modules()
        for hook in part._forward_pre_hooks.values()
        if isinstance(hook, _BlockHook)
    )
    return [(hook._user_id, hook._ipu_id) for hook in hooks]


def _is_block_hook(hook: object) -> bool:
    return isinstance(hook, _BlockHook)


def BlockFunction(
    user_id: str | None = None, ipu_id: int | None = None
) -> Callable[[Function], Function]:
    """Decorator: the function's body is a block."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def in_block(*args: Any, **kwargs: Any) -> Any:
            with Block(user_id, ipu_id):
                return function(*args, **kwargs)

        return in_block  # pyright: ignore[reportReturnType]

    return decorate
