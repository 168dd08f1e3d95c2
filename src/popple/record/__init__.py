"""Record: turn graph, plan and simulation into the contents of a report.

One replica is recorded (docs/decisions/0007); `info` says how many there are. Step
numbers of the simulation are the program ids of the report.
"""

from popple.record.operations import record_operations
from popple.record.record import record, record_chip_times
from popple.record.repeats import repeat_run
from popple.record.roles import ROLES, ChipMemory, memory_by_role

__all__ = [
    "ROLES",
    "ChipMemory",
    "memory_by_role",
    "record",
    "record_chip_times",
    "record_operations",
    "repeat_run",
]
