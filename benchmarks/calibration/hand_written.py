"""Kernels whose vertices were written in C++: rows into programs of steps.

No framework runs such vertices, so there is nothing to capture; the programs are made
of the same steps that plans are made of, and simulated like these. They judge
the lower half of the model: exchange, syncs, links, workers.
"""

from __future__ import annotations

from functools import cache

from benchmarks.calibration.dot_products import matvec
from benchmarks.calibration.published import Published
from benchmarks.calibration.rows import NotExpressed
from benchmarks.calibration.stencils import (
    CELLS,
    GATHER,
    PLACE,
    STENCIL,
    Grid,
    sweep,
)
from popple.sim import Simulation, simulate
from popple.target import Target, load_target

_SYSTEMS = {1: "gc2", 2: "c2"}
_LARGER_SYSTEM = "dss8440"
_CHEESE = (2200, 1122)
"""The picture of the rows that name it by what it shows."""
_SWEEPS_PER_ITERATION = 2


def sweep_seconds(row: Published) -> float:
    """All sweeps over a grid."""
    found = row.find(r"(\d+)x(\d+)(?!.*x\d)", f"{row.workload} {row.config}")
    simulation = _simulate(_grid(row, int(found[1]), int(found[2])))
    count = int(row.find(r"(\d+) iterations")[1]) * _SWEEPS_PER_ITERATION
    return count * simulation.seconds


def phase_cycles(row: Published) -> float:
    """One phase of one sweep."""
    if "cheese" not in row.config:
        raise NotExpressed("a picture of unknown size")
    simulation = _simulate(_grid(row, *_CHEESE))
    phase = row.find(r"(\w+) cycles", row.metric)[1]
    steps = {"compute": STENCIL, "pre": GATHER, "post": PLACE}
    if phase in steps:
        return simulation.cost_by_op[steps[phase]].cycles
    fields = {
        "exchange": simulation.cost.exchange_cycles,
        "globExchange": simulation.cost.link_cycles,
        "sync": simulation.cost.sync_cycles,
    }
    if phase not in fields:
        raise NotExpressed(f"no phase is called {phase!r}")
    return fields[phase]


def matvec_cycles(row: Published) -> float:
    """Compute cycles of a matrix-vector product."""
    if row.metric != "tile-average compute cycles":
        raise NotExpressed(row.metric)
    shape = row.find(r"(\d+)x(\d+) FP32", row.workload)
    pieces = row.find(r"colAxisSplit (\d+)", row.workload)[1]
    target = load_target(row.chip)
    program = matvec(int(shape[1]), int(shape[2]), int(pieces), target)
    return simulate(program, target).cost.compute_cycles


def _grid(row: Published, width: int, height: int) -> Grid:
    text = f"{row.config} float"
    cells = CELLS[row.find(r"float2|half4|float", text)[0]]
    # The strong-scaling runs allowed tiles of any size, the others kept a default.
    is_free = "hand-written" in row.workload or "phase" in row.config
    return Grid(height, width, cells, row.num_chips, 1 if is_free else 6)


@cache
def _simulate(grid: Grid) -> Simulation:
    target = _target(grid.num_chips)
    return simulate(sweep(grid, target), target)


def _target(num_chips: int) -> Target:
    return load_target(_SYSTEMS.get(num_chips, _LARGER_SYSTEM), num_chips)
