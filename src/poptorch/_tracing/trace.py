"""What happens while a model is traced: blocks and losses find their tracer here.

`isRunningOnIpu` is true exactly then. Blocks become placements by the execution
strategy; ops in no block after a block has ended are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from .._errors import Error
from .blocks import active_trace
from .strategies import _IExecutionStrategy

if TYPE_CHECKING:
    from popple.capture.torch import ActiveTrace, Tag

__all__ = [
    "FIRST_PLACE",
    "NO_BLOCK",
    "BlockPlaces",
    "Placed",
    "find_trace",
    "isRunningOnIpu",
    "mark_loss",
    "place_of",
    "tracing",
]


@dataclass(frozen=True)
class Placed:
    """The block an op is in: its name and where the strategy puts it."""

    user_id: str
    stage: int
    ipu: int


FIRST_PLACE = Placed("", 0, 0)
"""The place of ops before the first block."""

NO_BLOCK = Placed("", -1, -1)
"""The place of ops after a block has ended and before the next begins."""


class BlockPlaces:
    """Tells the tracer of blocks, and the lowering of their places."""

    def __init__(self, strategy: _IExecutionStrategy, trace: ActiveTrace) -> None:
        self._strategy = strategy
        self._trace = trace

    def set_block(self, user_id: str, ipu_id: int | None) -> None:
        """Ops from here on belong to block `user_id`."""
        stage, ipu = self._strategy.resolve(user_id, ipu_id)
        self._trace.set_block(Placed(user_id, stage, ipu))

    def clear_block(self) -> None:
        """Ops from here on belong to no block."""
        self._trace.set_block(NO_BLOCK)

    def mark_loss(self, loss: torch.Tensor) -> None:
        """`loss` is what training minimises."""
        self._trace.mark_loss(loss)

    @property
    def trace(self) -> ActiveTrace:
        """The trace under way."""
        return self._trace


def place_of(tag: Tag) -> tuple[int, int]:
    """(chip, stage) of a traced op."""
    block = tag.block
    if block is NO_BLOCK:
        place = f" ({tag.line})" if tag.line else ""
        raise Error(
            f"No active Block{place}: every op after a `with poptorch.Block` must be "
            "in a block too. Put it in one, or mark modules with poptorch.BeginBlock."
        )
    return (block.ipu, block.stage) if isinstance(block, Placed) else (0, 0)


@contextmanager
def tracing() -> Iterator[None]:
    """While inside, no tracer of an outer model is seen; the old one returns after."""
    token = active_trace.set(None)
    try:
        yield
    finally:
        active_trace.reset(token)


def find_trace() -> ActiveTrace | None:
    """The trace under way, or None on the CPU."""
    places: Any = active_trace.get()
    return None if places is None else places.trace


def isRunningOnIpu() -> bool:
    """Whether the model is being traced for the IPU rather than run on the CPU."""
    return active_trace.get() is not None


def mark_loss(loss: torch.Tensor) -> None:
    """Announce a loss to the tracer, if one is at work."""
    trace: Any = active_trace.get()
    if trace is not None:
        trace.mark_loss(loss)
