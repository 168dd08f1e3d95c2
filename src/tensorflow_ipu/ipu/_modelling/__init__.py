"""What IPU programs cost: traced programs, their model, reports and runs.

Here are the functions of `traced_programs`; the other modules are imported by name.
"""

from .traced_programs import (
    ProgramSettings,
    TracedProgram,
    modelled,
    owned_by,
    programs_of,
    record,
)

__all__ = [
    "ProgramSettings",
    "TracedProgram",
    "modelled",
    "owned_by",
    "programs_of",
    "record",
]
