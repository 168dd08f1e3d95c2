"""Simulate a Program on a Target: cycles, memory of every tile, liveness, timeline.

Knows nothing of graphs and plans: a program written by hand is simulated like any
other.
"""

from popple.sim.chip_time import NO_CYCLES, ChipTime, ClassCycles, TimeShares
from popple.sim.cost import Cost, total_cost
from popple.sim.energy import Energy
from popple.sim.leaves import LeafTime
from popple.sim.liveness import Interval, Liveness
from popple.sim.memory import Memory
from popple.sim.phases import stream_cycles, sync_cycles
from popple.sim.simulation import ExecutedStep, Simulation, simulate
from popple.sim.simulation_log import log_simulation, log_target
from popple.sim.timeline import Slice, Timeline, phase_without_op
from popple.sim.timing import Timing

__all__ = [
    "NO_CYCLES",
    "ChipTime",
    "ClassCycles",
    "Cost",
    "Energy",
    "ExecutedStep",
    "Interval",
    "LeafTime",
    "Liveness",
    "Memory",
    "Simulation",
    "Slice",
    "TimeShares",
    "Timeline",
    "Timing",
    "log_simulation",
    "log_target",
    "phase_without_op",
    "simulate",
    "stream_cycles",
    "sync_cycles",
    "total_cost",
]
