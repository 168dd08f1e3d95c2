"""Record: turn graph, plan and simulation into the contents of a report.

One replica is recorded (docs/decisions/0007); `info` says how many there are. Step
numbers of the simulation are the program ids of the report.
"""

from popple.record.operations import record_operations
from popple.record.record import record
from popple.record.repeats import repeat_run

__all__ = ["record", "record_operations", "repeat_run"]
