"""Sessions: settings, batches, cost and reports of a program, for every facade.

settings   environment variables: target, backend, device, reports
batches    micro-batches of one call, and which of their outputs are returned
cost       the modelled cost of a program, computed on request, and its report
cache      the executable cache: one file for each compiled program
times      host times of inputs and outputs, for performance counters

Steps that hold tensors are beside their engines: `engine/torch/session` for PyTorch.
"""

from popple.session.batches import (
    BatchPlan,
    InputGroups,
    MicroBatch,
    OutputPlan,
    Repetition,
    Returned,
)
from popple.session.cache import ExecutableCache
from popple.session.cost import (
    CostRequest,
    ModelledCost,
    ProgramReport,
    find_report,
)
from popple.session.settings import Settings, engine_options, read_settings

__all__ = [
    "BatchPlan",
    "CostRequest",
    "ExecutableCache",
    "InputGroups",
    "MicroBatch",
    "ModelledCost",
    "OutputPlan",
    "ProgramReport",
    "Repetition",
    "Returned",
    "Settings",
    "engine_options",
    "find_report",
    "read_settings",
]
