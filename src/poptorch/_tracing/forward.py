"""The model's `forward` as the tracer of the core sees it.

In: the arguments of the first call and the execution strategy. The tracer asks for the
arguments rebuilt from its own tensors, and for the tensors of what forward returned;
blocks that begin inside forward are told to it with the place the strategy gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException

from popple.capture.torch import (
    NO_BLOCK,
    ActiveTrace,
    Block,
    DynamicShape,
    ValueNeeded,
)
from popple.errors import CaptureError, PlacementError

from .._arguments.args import BoundArgs
from .._arguments.structure import flatten_tensors, output_tensors
from .._errors import Error
from .blocks import active_trace
from .extensions import extended_tracing
from .strategies import _IExecutionStrategy

__all__ = [
    "BlockPlaces",
    "DynamicShapeError",
    "TracedForward",
    "explained_tracing",
    "input_names",
]


class DynamicShapeError(Error, DynamicOutputShapeException):
    """An operator's result has a shape that only values decide."""

    def __init__(self, message: str, func: Any = None) -> None:
        Error.__init__(self, message)
        self.func = func
        self.args = (self._render(),)


@dataclass(frozen=True)
class TracedForward:
    """One call of forward while it is traced."""

    bound: BoundArgs
    strategy: _IExecutionStrategy

    @contextmanager
    def announcing(self, trace: ActiveTrace) -> Iterator[None]:
        """Blocks and losses find the tracer in this context."""
        token = active_trace.set(BlockPlaces(self.strategy, trace))
        try:
            yield
        finally:
            active_trace.reset(token)

    def arguments(
        self, tensors: Sequence[torch.Tensor]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the first call with other tensors."""
        rebuilt = self.bound.rebuild(tensors)
        return rebuilt.args, rebuilt.kwargs

    def tensors_of(self, returned: Any) -> list[torch.Tensor]:
        """The tensors that forward returned."""
        return output_tensors(returned)


class BlockPlaces:
    """Tells the tracer of blocks, and where the strategy puts them."""

    def __init__(self, strategy: _IExecutionStrategy, trace: ActiveTrace) -> None:
        self.trace = trace
        self._strategy = strategy

    def set_block(self, user_id: str, ipu_id: int | None) -> None:
        """Ops from here on belong to block `user_id`."""
        stage, ipu = self._strategy.resolve(user_id, ipu_id)
        self.trace.set_block(Block(user_id, ipu, stage))

    def clear_block(self) -> None:
        """Ops from here on belong to no block."""
        self.trace.set_block(NO_BLOCK)


def input_names(bound: BoundArgs) -> list[str]:
    """Names of the input tensors: the argument's, numbered if it holds several."""
    names: list[str] = []
    pairs = [*zip(bound.arg_names, bound.args, strict=True), *bound.kwargs.items()]
    for name, value in pairs:
        count = len(flatten_tensors(value))
        numbered = [f"{name}.{index}" for index in range(count)]
        names += [name] if count == 1 else numbered
    return names


@contextmanager
def explained_tracing() -> Iterator[None]:
    """A context to trace in: no outer model is seen, errors are PopTorch's."""
    token = active_trace.set(None)
    try:
        with extended_tracing():
            yield
    except DynamicShape as error:
        raise DynamicShapeError(str(error), error.func) from error
    except ValueNeeded as error:
        place = f"{error.where}: " if error.where else ""
        raise Error(
            f"{place}{error.what} Use torch.where or poptorch.cond instead of Python's "
            "control flow, and no item(), tolist() or float()."
        ) from error
    except PlacementError as error:
        place = f" ({error.where})" if error.where else ""
        raise Error(
            f"No active Block{place}: every op after a `with poptorch.Block` must be "
            "in a block too. Put it in one, or mark modules with poptorch.BeginBlock."
        ) from error
    except CaptureError as error:
        raise Error(str(error)) from error
    finally:
        active_trace.reset(token)
