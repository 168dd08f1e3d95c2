"""PopTorch programs on Popple: the names that `import poptorch` gives.

A program written for PopTorch finds here the names it imports. Wrap a module with
its options and optimiser, call it with data; what it computes comes from PyTorch,
what it would cost on an IPU from Popple's model.
"""

from __future__ import annotations

import sys as _sys
from typing import Any as _Any

try:
    import torch as _torch  # noqa: F401 - first, to say what is missing
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "PopTorch programs need PyTorch, which is not installed. Install it with: "
        "pip install 'popple[torch]'; the build without CUDA is smaller by gigabytes: "
        "pip install torch --index-url https://download.pytorch.org/whl/cpu",
        name="torch",
    ) from error

from popple.session.former_numpy import serve_former_names as _serve_former_names

from . import _args_parser as _args_parser  # programs reach for these three
from . import _impl as _impl
from . import _poplar_executor as _poplar_executor
from . import enums, ops, optim, options, poptorch_core, profiling
from ._arguments.structure import ICustomArgParser, registerCustomArgParser
from ._data.accessor import AsynchronousDataAccessor
from ._data.data_loader import DataLoader
from ._device import ipuHardwareIsAvailable, ipuHardwareVersion, poptorchAtExit
from ._errors import ConfigFileError, Error, RecoverableError, UnrecoverableError
from ._executor import PoplarExecutor
from ._logging import setLogLevel
from ._model.hooks import registerPostCompileHook, registerPreCompileHook
from ._model.printing import module_repr, print
from ._model.wrap import inferenceModel, load, trainingModel
from ._ops.losses import identity_loss
from ._options.former import get_former as _get_former
from ._tracing.extensions import registerGeometricCustomArgParsers
from ._tracing.trace import isRunningOnIpu
from ._version import __version__
from .enums import (
    AutoStage,
    CommGroupType,
    ConnectionType,
    DataLoaderMode,
    HalfFloatCastingBehavior,
    Liveness,
    MatMulSerializationMode,
    MeanReductionStrategy,
    MultiConvPlanType,
    OutputMode,
    OverlapMode,
    ReductionType,
    SharingStrategy,
    SyncPattern,
    VariableRetrievalMode,
)
from .ops import (
    CPU,
    BeginBlock,
    Block,
    BlockFunction,
    LegacyBeginBlockFn,
    MultiConv,
    NameScope,
    cond,
    ctc_beam_search_decoder,
    custom_op,
    dynamic_slice,
    dynamic_update,
    for_loop,
    fps,
    ipu_print_tensor,
    nearest,
    nop,
    recomputationCheckpoint,
    registerCustomOp,
    removeBlocks,
    serializedMatMul,
    set_available_memory,
    set_overlap_for_input,
    set_overlap_for_output,
)
from .options import (
    Attribute,
    Options,
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
    TensorLocationSettings,
)

__all__ = [
    "CPU",
    "AsynchronousDataAccessor",
    "Attribute",
    "AutoStage",
    "BeginBlock",
    "Block",
    "BlockFunction",
    "CommGroupType",
    "ConfigFileError",
    "ConnectionType",
    "DataLoader",
    "DataLoaderMode",
    "Error",
    "HalfFloatCastingBehavior",
    "ICustomArgParser",
    "LegacyBeginBlockFn",
    "Liveness",
    "MatMulSerializationMode",
    "MeanReductionStrategy",
    "MultiConv",
    "MultiConvPlanType",
    "NameScope",
    "Options",
    "OutputMode",
    "OverlapMode",
    "ParallelPhasedExecution",
    "Phase",
    "PipelinedExecution",
    "PoplarExecutor",
    "RecoverableError",
    "ReductionType",
    "SerialPhasedExecution",
    "ShardedExecution",
    "SharingStrategy",
    "Stage",
    "SyncPattern",
    "TensorLocationSettings",
    "UnrecoverableError",
    "VariableRetrievalMode",
    "__version__",
    "cond",
    "ctc_beam_search_decoder",
    "custom_op",
    "dynamic_slice",
    "dynamic_update",
    "enums",
    "for_loop",
    "fps",
    "identity_loss",
    "inferenceModel",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "ipu_print_tensor",
    "isRunningOnIpu",
    "load",
    "module_repr",
    "nearest",
    "nop",
    "ops",
    "optim",
    "options",
    "poptorchAtExit",
    "poptorch_core",
    "print",
    "profiling",
    "recomputationCheckpoint",
    "registerCustomArgParser",
    "registerCustomOp",
    "registerGeometricCustomArgParsers",
    "registerPostCompileHook",
    "registerPreCompileHook",
    "removeBlocks",
    "serializedMatMul",
    "setLogLevel",
    "set_available_memory",
    "set_overlap_for_input",
    "set_overlap_for_output",
    "trainingModel",
]


def __getattr__(name: str) -> _Any:
    """A name of an older release, or the error that it is none."""
    text = f"module 'poptorch' has no attribute '{name}'"
    return _get_former(_sys.modules[__name__], name, text)


_serve_former_names()
