"""Sessions: settings, batches, cost and reports of a program, for every facade.

settings   environment variables: target, backend, device, reports, logs
poplar_options  options of Poplar: what each does here, and which are unknown
compiling  what compiling asks of the model: log lines, memory, a report
batches    micro-batches of one call, and which of their outputs are returned
cost       the modelled cost of a program, computed on request, and its report
archive    the container of executables on disk
cache      the executable cache: one file for each compiled program
kept       what a cache holds of a program: its parts, cycles and reports
fingerprint, object_digest, packages   keys of caches: what a program depends on
times      host times of inputs and outputs, for performance counters
interrupts Ctrl-C at safe points, one compilation at a time
collection the garbage collector, paused while a program is compiled

Steps that hold tensors are beside their engines: `engine/torch/session` for PyTorch.
"""

from popple.session.archive import Archive, read_archive, write_archive
from popple.session.batches import (
    BatchPlan,
    InputGroups,
    MicroBatch,
    OutputPlan,
    Repetition,
    Returned,
)
from popple.session.cache import ExecutableCache
from popple.session.compiling import compile_program, log_run
from popple.session.cost import (
    CostRequest,
    ModelledCost,
    ProgramReport,
    find_report,
    is_graph_profile_only,
)
from popple.session.kept import KeptProgram
from popple.session.settings import (
    Settings,
    engine_options,
    follow_log_variables,
    read_settings,
)

__all__ = [
    "Archive",
    "BatchPlan",
    "CostRequest",
    "ExecutableCache",
    "InputGroups",
    "KeptProgram",
    "MicroBatch",
    "ModelledCost",
    "OutputPlan",
    "ProgramReport",
    "Repetition",
    "Returned",
    "Settings",
    "compile_program",
    "engine_options",
    "find_report",
    "follow_log_variables",
    "is_graph_profile_only",
    "log_run",
    "read_archive",
    "read_settings",
    "write_archive",
]
