"""Loops and branches of a compiled model, for inference.

A loop's body is traced once. Of a branch both sides are traced and computed, and the
condition picks between their results; what a side does beyond its results (printing,
calls of the host) looks at `taken_branch` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .._errors import Error
from .._tracing.trace import find_trace

__all__ = ["cond", "for_loop", "taken_branch"]

Tensors = list[torch.Tensor]
Body = Callable[..., Any]

_taken: ContextVar[torch.Tensor | None] = ContextVar("taken", default=None)


def taken_branch() -> torch.Tensor | None:
    """Whether the branch being traced is taken in a run; None outside branches."""
    return _taken.get()


def for_loop(count: int, body: Body, inputs: Tensors) -> Tensors:
    """Run `body` `count` times, its results being the next time's arguments.

    `inputs` are the first arguments; they are passed by value. Outside a compiled
    model the body runs once.
    """
    _check_inputs(inputs, "for_loop")
    trace = find_trace()
    if trace is None:
        return _results(body(*(tensor.clone() for tensor in inputs)))
    if trace.is_training:
        raise Error("poptorch.for_loop() is only supported in inference.")
    if not isinstance(count, int) or count < 0:
        raise Error(f"The count of a for_loop must be a number of times, not {count}.")
    if count == 0:
        return [tensor.clone() for tensor in inputs]

    def one_round(values: Tensors) -> Tensors:
        results = _results(body(*values))
        _check_alike(results, inputs, "The body of a for_loop must return its inputs'")
        return results

    return trace.control.repeat(count, one_round, inputs)


def cond(
    condition: torch.Tensor,
    then_body: Body,
    then_inps: Tensors,
    else_body: Body,
    else_inps: Tensors,
) -> Tensors:
    """What `then_body` or `else_body` returns, as `condition` says in every run.

    Both must return as many tensors, of the same shapes and types. Their arguments are
    passed by value, and they must not change tensors from outside in place.
    """
    _check_inputs(then_inps, "cond")
    _check_inputs(else_inps, "cond")
    trace = find_trace()
    if trace is None:
        body, inputs = (then_body, then_inps) if condition else (else_body, else_inps)
        return _results(body(*inputs))
    if trace.is_training:
        raise Error("poptorch.cond() is only supported in inference.")
    if condition.numel() != 1:
        raise Error(
            f"The condition of cond must have one element, not {condition.numel()}."
        )
    is_then = condition.clone().reshape(()).bool()
    is_other = is_then.logical_not()
    chosen: Tensors = []

    def run_then() -> Tensors:
        chosen.extend(_run_branch(is_then, then_body, then_inps))
        return chosen

    def run_else() -> Tensors:
        other = _run_branch(is_other, else_body, else_inps)
        _check_alike(other, chosen, "The bodies of a cond must return the same")
        return other

    return trace.control.branch(is_then, run_then, run_else)


def _run_branch(is_taken: torch.Tensor, body: Body, inputs: Tensors) -> Tensors:
    outer = _taken.get()
    if outer is not None:
        is_taken = is_taken.logical_and(outer)
    with _branch(is_taken), _OwnWrites():
        return _results(body(*(tensor.clone() for tensor in inputs)))


@contextmanager
def _branch(is_taken: torch.Tensor) -> Iterator[None]:
    token = _taken.set(is_taken)
    try:
        yield
    finally:
        _taken.reset(token)


class _OwnWrites(TorchDispatchMode):
    """Refuses writes to tensors that were there before: both branches would write."""

    def __init__(self) -> None:
        super().__init__()
        self._own: set[int] = set()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one operator; look at what it writes to and remember what it makes."""
        given = [*args, *(kwargs or {}).values()]
        for argument, declared in zip(given, func._schema.arguments, strict=False):
            if declared.alias_info is not None and declared.alias_info.is_write:
                self._check(argument)
        known = {_memory(t) for t in given if isinstance(t, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        made = result if isinstance(result, (list, tuple)) else [result]
        tensors = [t for t in made if isinstance(t, torch.Tensor)]
        self._own.update(_memory(t) for t in tensors if _memory(t) not in known)
        return result

    def _check(self, argument: Any) -> None:
        if isinstance(argument, torch.Tensor) and _memory(argument) not in self._own:
            raise Error(
                "A body of cond changes a tensor from outside in place. Return the new "
                "value instead, or change a clone()."
            )


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _results(returned: Any) -> Tensors:
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


def _check_inputs(inputs: Any, name: str) -> None:
    if not isinstance(inputs, list):
        raise ValueError(
            f"poptorch.{name} takes a list of tensors. (Object is not list)"
        )
    for index, tensor in enumerate(inputs):
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(
                f"poptorch.{name} takes a list of tensors. (Object contained in list "
                f"at index {index} is not torch.tensor)"
            )


def _check_alike(
    found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], rule: str
) -> None:
    if len(found) != len(wanted):
        raise Error(f"{rule} number of tensors: {len(wanted)}, not {len(found)}.")
    for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Error(
                f"{rule} shapes and types: tensor {index} is {other.dtype} "
                f"{tuple(other.shape)}, but also {one.dtype} {tuple(one.shape)}."
            )
