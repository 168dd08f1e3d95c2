"""Simulation: time, memory and liveness of a program on a target, and `simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from popple.errors import ProgramError
from popple.program import Numbering, Program, TileSum, TileVector, verify
from popple.quick import quick
from popple.sim.chip_time import ChipTime, TimeShares, share_time
from popple.sim.cost import Cost
from popple.sim.energy import Energy, energy_of
from popple.sim.liveness import Liveness, find_liveness
from popple.sim.memory import Memory, find_memory
from popple.sim.timeline import PhasesByOp, Timeline, make_timeline
from popple.sim.timing import Timing, time_program
from popple.sim.unroll import Unroller
from popple.target import Target


@quick
@dataclass(frozen=True, slots=True)
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
    def time_shares(self) -> TimeShares:
        """Which steps take the cycles of every chip."""
        return share_time(self.timing)

    @property
    def time_by_chip(self) -> tuple[ChipTime, ...]:
        """Each cycle of the run on every chip, in exactly one class."""
        return self.time_shares.by_chip

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
        on_chips = _CyclesOnChips(self.timing, self.program)
        # Calls are opened too: a report lists the leaves inside functions.
        for span in Unroller(self.timing, limit, lambda _: False).spans():
            rounds = span.num_rounds
            for chip, busy, by_tile in on_chips.of(span.step_id):
                yield ExecutedStep(
                    span.step_id,
                    chip,
                    span.start_cycles,
                    busy * rounds,
                    by_tile.scaled(rounds),
                    rounds,
                )


def simulate(
    program: Program, target: Target, phases: PhasesByOp | None = None
) -> Simulation:
    """Time and memory of a program on a target; ProgramError if it makes no sense.

    `phases` names the phase of each op, for the timeline.
    """
    verify(program)
    _check_size(program, target)
    timing = time_program(program, target)
    liveness = find_liveness(program, timing.steps)
    memory = find_memory(program, timing.steps, liveness, target.chip)
    timeline = make_timeline(timing, phases=phases)
    return Simulation(program, target, timing, timeline, liveness, memory)


class _CyclesOnChips:
    """What one execution of a step with everything inside it takes on each chip."""

    def __init__(self, timing: Timing, program: Program) -> None:
        self._timing = timing
        self._program = program
        self._totals: dict[int, TileVector] = {}
        # Loops execute a step many times.
        self._rows: dict[int, list[tuple[int, int, TileVector]]] = {}
        # By identity: leaves that do the same share their vector.
        self._parts: dict[tuple[int, int], TileVector] = {}

    def of(self, step_id: int) -> list[tuple[int, int, TileVector]]:
        """(chip, busy cycles, cycles of its tiles) of the chips that take part."""
        if (known := self._rows.get(step_id)) is None:
            by_tile = self._by_tile(step_id)
            busy = self._timing.busy_by_chip[step_id]
            known = self._rows[step_id] = [
                (chip, cycles, self._part(by_tile, chip))
                for chip, cycles in enumerate(busy)
                if cycles
            ]
        return known

    def _part(self, by_tile: TileVector, chip: int) -> TileVector:
        key = id(by_tile), chip
        if (known := self._parts.get(key)) is None:
            size = self._program.tiles_per_chip
            known = by_tile.part(chip * size, (chip + 1) * size)
            self._parts[key] = known
        return known

    def _by_tile(self, step_id: int) -> TileVector:
        """The cycles of all tiles; those of control steps are kept."""
        if (leaf := self._timing.leaf_times[step_id]) is not None:
            return leaf.cycles_by_tile
        if step_id not in self._totals:
            total = TileSum(self._program.num_tiles)
            for part, times in self._timing.parts[step_id]:
                total.add(self._by_tile(part), times)
            self._totals[step_id] = total.to_vector()
        return self._totals[step_id]


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
