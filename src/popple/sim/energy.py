"""Energy: a rough estimate of joules and watts of a run.

    idle      the chips' idle power, as long as the run takes
    compute   peak less idle power, shared by the tiles: a tile draws its share while
              it computes, so all of them together draw the peak
    exchange  picojoules for each byte that arrives, from tiles, chips or the host

In: times, tile cycles and bytes of a simulation. Out: joules by cause. Published
figures fix no more than that: a tile is taken to draw as much for an addition as for
its widest multiplications, and the host and the fans of a machine are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from popple.program import Execute
from popple.sim.timing import Timing
from popple.target import Chip

_JOULES_PER_PICOJOULE = 1e-12


@dataclass(frozen=True)
class Energy:
    """Estimated joules of a run by cause, and the seconds it takes."""

    seconds: float = 0.0
    idle_joules: float = 0.0
    compute_joules: float = 0.0
    exchange_joules: float = 0.0

    @property
    def joules(self) -> float:
        """All causes together."""
        return self.idle_joules + self.compute_joules + self.exchange_joules

    @property
    def mean_watts(self) -> float:
        """Power of all chips, on average over the run."""
        return self.joules / self.seconds if self.seconds else 0.0

    def of_replicas(self, count: int) -> Energy:
        """So many replicas that do the same at the same time."""
        return Energy(
            self.seconds,
            self.idle_joules * count,
            self.compute_joules * count,
            self.exchange_joules * count,
        )


def joules_per_tile_cycle(chip: Chip) -> float:
    """What a cycle of computing on one tile adds to the idle power."""
    tile_watts = (chip.peak_watts - chip.idle_watts) / chip.num_tiles
    return tile_watts / chip.clock_hz


def estimate_energy(
    chip: Chip,
    num_chips: int,
    cycles: int,
    compute_tile_cycles: int,
    num_bytes: int,
) -> Energy:
    """Energy of chips that run for `cycles`.

    `compute_tile_cycles` are the cycles of all tiles in which they compute, `num_bytes`
    what arrives from other tiles, other chips and the host, or goes there.
    """
    # Idle power is drawn by all chips for the whole run, waiting ones included.
    seconds = cycles / chip.clock_hz
    byte_joules = chip.exchange_picojoules_per_byte * _JOULES_PER_PICOJOULE
    return Energy(
        seconds=seconds,
        idle_joules=chip.idle_watts * num_chips * seconds,
        compute_joules=joules_per_tile_cycle(chip) * compute_tile_cycles,
        exchange_joules=byte_joules * num_bytes,
    )


def energy_of(timing: Timing, chip: Chip) -> Energy:
    """Energy of one run of a timed program."""
    cost = timing.cost
    num_bytes = cost.exchange_bytes + cost.link_bytes + cost.host_bytes
    num_chips = len(timing.busy_by_chip[0])
    tile_cycles = compute_tile_cycles(timing)
    return estimate_energy(chip, num_chips, cost.cycles, tile_cycles, num_bytes)


def compute_tile_cycles(timing: Timing) -> int:
    """Cycles in which tiles compute, added up over all tiles and executions."""
    return sum(
        leaf.cycles_by_tile.total * count
        for row, leaf, count in zip(
            timing.steps, timing.leaf_times, timing.executions, strict=True
        )
        if leaf is not None and isinstance(row.step, Execute)
    )
