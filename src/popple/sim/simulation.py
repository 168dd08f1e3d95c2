"""Simulation: time, memory and liveness of a program on a target, and `simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from popple.errors import ProgramError
from popple.program import Numbering, Program, TileSum, TileVector, verify
from popple.sim.cost import Cost
from popple.sim.energy import Energy, energy_of
from popple.sim.liveness import Liveness, find_liveness
from popple.sim.memory import Memory, find_memory
from popple.sim.timeline import Timeline, make_timeline
from popple.sim.timing import Timing, time_program
from popple.sim.unroll import Span, Unroller
from popple.target import Target


@dataclass(frozen=True)
class ExecutedStep:
    """A step on one chip at one time, or rounds of a loop taken together.

    `step_id` is the number of a leaf, or of the body of such a loop. `cycles` is what
    the chip is busy; `cycles_by_tile` covers the tiles of this chip.
    """

    step_id: int
    chip: int
    start_cycles: int
    cycles: int
    cycles_by_tile: TileVector
    num_rounds: int = 1


@dataclass(frozen=True)
class Simulation:
    """Time and memory of one run of one replica of a program on a target."""

    program: Program
    target: Target
    timing: Timing
    timeline: Timeline
    liveness: Liveness
    memory: Memory

    @property
    def steps(self) -> Numbering:
        """The numbered steps that all step numbers here refer to."""
        return self.timing.steps

    @property
    def cost(self) -> Cost:
        """The whole run."""
        return self.timing.cost

    @property
    def cost_by_op(self) -> Mapping[str, Cost]:
        """All executions of the leaves of each op; "" is the key of those without."""
        return self.timing.cost_by_op

    @property
    def cost_by_function(self) -> Mapping[str, Cost]:
        """All executions of main and of each function."""
        return self.timing.cost_by_function

    @property
    def executions(self) -> tuple[int, ...]:
        """How often every step is executed, by step number."""
        return self.timing.executions

    @property
    def busy_cycles_by_chip(self) -> tuple[int, ...]:
        """Cycles in which each chip takes part in a step."""
        return self.timing.busy_by_chip[0]

    @property
    def idle_cycles_by_chip(self) -> tuple[int, ...]:
        """Cycles in which each chip waits for the others."""
        return self.timing.idle_by_chip

    @property
    def seconds(self) -> float:
        """Duration of the run at the chip's clock."""
        return self.cost.cycles / self.target.chip.clock_hz

    @cached_property
    def energy(self) -> Energy:
        """What the run draws, a rough estimate."""
        return energy_of(self.timing, self.target.chip)

    @property
    def fits(self) -> bool:
        """Whether the program fits into the memory of every tile."""
        return self.memory.fits

    @property
    def peak_tile(self) -> int:
        """The fullest tile, gaps included."""
        return self.memory.total_with_gaps.peak_tile

    @property
    def peak_tile_bytes(self) -> int:
        """Bytes on the fullest tile, gaps included."""
        return self.memory.total_with_gaps.maximum

    def executed_steps(self, limit: int = 100_000) -> Iterator[ExecutedStep]:
        """Leaf steps as they are executed, those of each chip in order of time.

        Loops are unrolled until `limit` leaves have been given; rounds left then make
        one row for each loop and chip. The cycles of a chip's rows add up to its busy
        cycles.
        """
        tile_cycles = _TileCycles(self.timing, self.program.num_tiles)
        # Calls are opened too: a report lists the leaves inside functions.
        for span in Unroller(self.timing, limit, lambda _: False).spans():
            yield from self._rows_of(span, tile_cycles)

    def _rows_of(self, span: Span, tile_cycles: _TileCycles) -> Iterator[ExecutedStep]:
        size = self.program.tiles_per_chip
        for chip, busy in enumerate(self.timing.busy_by_chip[span.step_id]):
            if not busy:
                continue
            by_tile = tile_cycles.of(span.step_id).scaled(span.num_rounds)
            yield ExecutedStep(
                span.step_id,
                chip,
                span.start_cycles,
                busy * span.num_rounds,
                by_tile.part(chip * size, (chip + 1) * size),
                span.num_rounds,
            )


def simulate(program: Program, target: Target) -> Simulation:
    """Time and memory of a program on a target; ProgramError if it makes no sense."""
    verify(program)
    _check_size(program, target)
    timing = time_program(program, target)
    liveness = find_liveness(program, timing.steps)
    memory = find_memory(program, timing.steps, liveness, target.chip)
    return Simulation(program, target, timing, make_timeline(timing), liveness, memory)


class _TileCycles:
    """Cycles by tile of one execution of a step with everything inside it."""

    def __init__(self, timing: Timing, num_tiles: int) -> None:
        self._timing = timing
        self._num_tiles = num_tiles
        self._known: dict[int, TileVector] = {}

    def of(self, step_id: int) -> TileVector:
        """The cycles of the step; those of control steps are kept."""
        if (leaf := self._timing.leaf_times[step_id]) is not None:
            return leaf.cycles_by_tile
        if step_id not in self._known:
            total = TileSum(self._num_tiles)
            for part, times in self._timing.parts[step_id]:
                total.add(self.of(part), times)
            self._known[step_id] = total.to_vector()
        return self._known[step_id]


def _check_size(program: Program, target: Target) -> None:
    wanted = (program.num_chips, program.tiles_per_chip)
    given = (target.num_chips, target.tiles_per_chip)
    if wanted != given:
        raise ProgramError(
            f"is made for {wanted[0]} chips of {wanted[1]} tiles, but the target has "
            f"{given[0]} of {given[1]}.",
            where=f"program {program.name!r}",
            remedy="Plan it for this target, or simulate it on the one it is made for.",
        )
