"""Functions and marks for use inside a model, as `poptorch.ops` names them."""

from __future__ import annotations

from ._ops.control import cond, for_loop
from ._ops.conv import MultiConv
from ._ops.ctc import ctc_beam_search_decoder
from ._ops.custom import custom_op, registerCustomOp
from ._ops.host import CPU
from ._ops.identity import (
    nop,
    recomputationCheckpoint,
    serializedMatMul,
    set_available_memory,
)
from ._ops.losses import identity_loss
from ._ops.overlap import set_overlap_for_input, set_overlap_for_output
from ._ops.points import fps, nearest
from ._ops.print import ipu_print_tensor
from ._ops.scope import NameScope
from ._ops.slice import dynamic_slice, dynamic_update
from ._tracing.blocks import (
    BeginBlock,
    Block,
    BlockFunction,
    LegacyBeginBlockFn,
    removeBlocks,
)

__all__ = [
    "CPU",
    "BeginBlock",
    "Block",
    "BlockFunction",
    "LegacyBeginBlockFn",
    "MultiConv",
    "NameScope",
    "cond",
    "ctc_beam_search_decoder",
    "custom_op",
    "dynamic_slice",
    "dynamic_update",
    "for_loop",
    "fps",
    "identity_loss",
    "ipu_print_tensor",
    "nearest",
    "nop",
    "recomputationCheckpoint",
    "registerCustomOp",
    "removeBlocks",
    "serializedMatMul",
    "set_available_memory",
    "set_overlap_for_input",
    "set_overlap_for_output",
]
