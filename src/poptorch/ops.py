"""Functions and marks for use inside a model, as `poptorch.ops` names them."""

from __future__ import annotations

from . import _ops_builtin as _ops_builtin  # registers the custom ops
from ._blocks import (
    BeginBlock,
    Block,
    BlockFunction,
    LegacyBeginBlockFn,
    removeBlocks,
)
from ._losses import identity_loss
from ._ops_control import cond, for_loop
from ._ops_conv import MultiConv
from ._ops_ctc import ctc_beam_search_decoder
from ._ops_custom import custom_op, registerCustomOp
from ._ops_host import CPU
from ._ops_identity import (
    nop,
    recomputationCheckpoint,
    serializedMatMul,
    set_available_memory,
)
from ._ops_overlap import set_overlap_for_input, set_overlap_for_output
from ._ops_points import fps, nearest
from ._ops_print import ipu_print_tensor
from ._ops_scope import NameScope
from ._ops_slice import dynamic_slice, dynamic_update

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
