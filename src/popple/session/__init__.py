"""Sessions: what every facade does with a captured program, whatever its framework.

settings   what the environment asks for: target, backend, reports
batches    how the data of one call are cut and its outputs chosen
cost       the modelled cost of a program, made when someone asks
cache      what is known of programs that were compiled before
reports    where the report of a program goes, and which runs it shows
torch/     the step of a PyTorch program: traced, held in memory, run
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
