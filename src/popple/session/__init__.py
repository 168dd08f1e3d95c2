"""Sessions: what every facade does with a captured program, whatever its framework.

settings   what the environment asks for: target, backend, reports
batches    how the data of one call are cut and its outputs chosen
cost       the modelled cost of a program, made when someone asks, and its report
cache      what is known of programs that were compiled before
times      how long the parts of a call take

The step of a PyTorch program, its device memory and its random state are in
`popple.engine.torch.session`.
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
