"""Functions and marks for use inside a model, as `poptorch.ops` names them."""

from __future__ import annotations

from ._blocks import (
    BeginBlock,
    Block,
    BlockFunction,
    LegacyBeginBlockFn,
    removeBlocks,
)
from ._losses import identity_loss

__all__ = [
    "BeginBlock",
    "Block",
    "BlockFunction",
    "LegacyBeginBlockFn",
    "identity_loss",
    "removeBlocks",
]
