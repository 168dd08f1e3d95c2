"""Poplar's log lines about a compiled program: its size, memory, steps and tiles.

WARN says which chips have not enough memory, INFO gives sizes and cycles, DEBUG one
line for each function, kind of vertex and compute set, TRACE one for every tile.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

from popple.logs import TRACE, get_logger, is_wanted
from popple.program import Exchange, Execute, StreamCopy
from popple.sim.simulation import Simulation
from popple.target import Target

_CODELETS = get_logger("poplar", "CODELETS")
_ENGINE = get_logger("poplar", "ENGINE")
_GRAPH = get_logger("poplar", "GRAPH")
_PROGRAM = get_logger("poplar", "PROGRAM")
_TARGET = get_logger("poplar", "TARGET")
_TENSOR = get_logger("poplar", "TENSOR")


def log_target(name: str, target: Target) -> None:
    """Log which machine a program is compiled for."""
    chip = target.chip
    _ENGINE.info("Compiling %s", name)
    _TARGET.info(
        "%s: %d replicas of %d IPUs %s with %d tiles of %d bytes at %d MHz",
        target.system.name,
        target.num_replicas,
        target.num_chips,
        chip.name,
        chip.num_tiles,
        chip.tile_memory_bytes,
        chip.clock_hz // 1_000_000,
    )


def log_simulation(simulation: Simulation) -> None:
    """Log what is known of a program, as far as someone wants to see it."""
    if not is_wanted():
        return
    _warn_of_memory(simulation)
    if _GRAPH.isEnabledFor(logging.INFO):
        _log_sizes(simulation)
    if _GRAPH.isEnabledFor(logging.DEBUG):
        _log_functions(simulation)
    if _CODELETS.isEnabledFor(logging.DEBUG):
        _log_codelets(simulation)
    if _PROGRAM.isEnabledFor(logging.DEBUG):
        _log_steps(simulation)
    if _TENSOR.isEnabledFor(TRACE):
        _log_tiles(simulation)
    _ENGINE.info(
        "Compiled %s: %d cycles, %.6f s per run",
        simulation.program.name,
        simulation.cost.cycles,
        simulation.seconds,
    )


def _warn_of_memory(simulation: Simulation) -> None:
    """Chips whose tiles are too small; the program is reported all the same."""
    if simulation.fits:
        return
    memory, size = simulation.memory, simulation.program.tiles_per_chip
    for chip in range(simulation.program.num_chips):
        start = chip * size
        over = memory.overflow_by_tile.part(start, start + size)
        if over.is_zero:
            continue
        used = memory.total_with_gaps.part(start, start + size)
        _ENGINE.warning(
            "Out of memory on IPU %d: %d tiles have more than %d bytes; tile %d needs "
            "%d bytes",
            chip,
            over.num_nonzero,
            memory.tile_memory_bytes,
            used.peak_tile,
            used.maximum,
        )


def _log_sizes(simulation: Simulation) -> None:
    kinds = Counter(type(row.step) for row in simulation.steps)
    _GRAPH.info(
        "%s: %d variables, %d functions, %d compute sets, %d exchanges, %d stream "
        "copies",
        simulation.program.name,
        len(simulation.program.variables),
        len(simulation.program.functions),
        kinds[Execute],
        kinds[Exchange],
        kinds[StreamCopy],
    )
    for chip, peak in enumerate(simulation.memory.peak_by_chip):
        _GRAPH.info("IPU %d: the fullest tile has %d bytes", chip, peak)


def _log_functions(simulation: Simulation) -> None:
    for name, cost in simulation.cost_by_function.items():
        _GRAPH.debug("graph %s: %d cycles in all calls", name, cost.cycles)


def _log_codelets(simulation: Simulation) -> None:
    counts: Counter[str] = Counter()
    for _, step in _compute_steps(simulation):
        for group in step.compute_set.vertices:
            counts[group.codelet.name] += group.count_by_tile.total
    for name, count in sorted(counts.items()):
        _CODELETS.debug("%s: %d vertices", name, count)


def _log_steps(simulation: Simulation) -> None:
    for step_id, step in _compute_steps(simulation):
        leaf = simulation.timing.leaf_times[step_id]
        vertices = sum(group.count_by_tile.total for group in step.compute_set.vertices)
        _PROGRAM.debug(
            "compute set %s: %d vertices, %d cycles, executed %d times",
            step.compute_set.name,
            vertices,
            leaf.cost.cycles if leaf else 0,
            simulation.executions[step_id],
        )


def _compute_steps(simulation: Simulation) -> Iterator[tuple[int, Execute]]:
    for row in simulation.steps:
        if isinstance(row.step, Execute):
            yield row.id, row.step


def _log_tiles(simulation: Simulation) -> None:
    memory, size = simulation.memory, simulation.program.tiles_per_chip
    always = memory.always_live_bytes.to_array()
    transient = memory.transient_bytes.to_array()
    total = memory.total_with_gaps.to_array()
    for tile in range(len(total)):
        _TENSOR.log(
            TRACE,
            "IPU %d tile %d: %d bytes always live, %d not always live, %d with gaps",
            tile // size,
            tile % size,
            always[tile],
            transient[tile],
            total[tile],
        )
