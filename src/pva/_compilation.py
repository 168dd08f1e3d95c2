"""What was compiled: graph, target, memory, programs, liveness."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from popple import report as rp
from pva._compute import ComputeSet, ComputeSetIndex
from pva._memory import MemoryIndex, Tile
from pva._programs import Program, ProgramIndex
from pva._variables import LoweredVariables, Variable, VariableIndex

__all__ = ["IPU", "CompilationReport", "Target"]


class Architecture(Enum):
    """Generations of the chip."""

    Unknown = 0
    Ipu1 = 1
    Ipu2 = 2
    Ipu21 = 21


class TargetType(Enum):
    """Whether the machine is real."""

    Ipu = 0
    IpuModel = 1
    Cpu = 2
    Unknown = 3


_TYPES = {
    "IPU": TargetType.Ipu,
    "IPU_MODEL": TargetType.IpuModel,
    "CPU": TargetType.Cpu,
}


class IPU:
    """One chip: its tiles."""

    Architecture = Architecture

    def __init__(self, tiles: list[Tile]) -> None:
        self.tiles = tiles


class Target:
    """The machine a program was compiled for."""

    Type = TargetType

    def __init__(self, record: rp.TargetInfo) -> None:
        self.numIPUs = record.num_chips
        self.numReplicas = record.num_replicas
        self.numTiles = record.num_tiles
        self.ipusPerReplica = record.chips_per_replica
        self.tilesPerIpu = record.tiles_per_chip
        self.tilesPerReplica = record.tiles_per_replica
        self.bytesPerTile = record.bytes_per_tile
        self.bytesPerIPU = record.bytes_per_chip
        self.memoryPerReplica = record.bytes_per_replica
        self.totalMemory = record.total_bytes
        self.clockFrequency = record.clock_hz
        self.minSyncDelay = record.min_sync_delay_cycles
        self.type = _TYPES.get(record.kind, TargetType.Unknown)
        known = Architecture.__members__
        name = record.architecture.capitalize()
        self.architecture = known.get(name, Architecture.Unknown)


class Graph(NamedTuple):
    """Counts over the whole program."""

    numComputeSets: int
    numEdges: int
    numVars: int
    numVertices: int


class LivenessMemory:
    """What is live at a step besides what always is."""

    def __init__(self, find: Callable[[], list[Variable]], total: int | None) -> None:
        self._find = find
        self._bytes = total

    @cached_property
    def variables(self) -> list[Variable]:
        """The variables, with what of them is live here."""
        return self._find()

    @property
    def bytes(self) -> int:
        """What they take together."""
        if self._bytes is None:
            self._bytes = sum(each.size for each in self.variables)
        return self._bytes


class LivenessProgramStep:
    """One visit of a program, in the order of execution: the clock of liveness."""

    def __init__(self, report: CompilationReport, index: int) -> None:
        self._report = report
        self._index = index
        self._record = report.records.liveness_steps[index]

    @property
    def program(self) -> Program:
        """What is run at the step."""
        return self._report.program_index.programs[self._record.program_id]

    @property
    def notAlwaysLiveMemory(self) -> LivenessMemory:
        """On all chips of a replica."""
        chips = self._report.liveness.chips
        total = sum(int(chip.transient_bytes[self._index]) for chip in chips)
        return self._memory(total)

    def notAlwaysLiveMemoryForIpu(self, ipu: int) -> LivenessMemory:
        """On one chip."""
        chip = self._report.liveness.chips[ipu]
        return self._memory(int(chip.transient_bytes[self._index]), chip=ipu)

    def notAlwaysLiveMemoryForTile(self, tile: int) -> LivenessMemory:
        """On one tile."""
        return self._memory(None, tile=tile)

    def _memory(
        self, total: int | None, tile: int | None = None, chip: int | None = None
    ) -> LivenessMemory:
        index = self._report.variable_index
        return LivenessMemory(
            lambda: index.transient_at(self._record.id, tile, chip), total
        )


class CompilationReport:
    """What was compiled, as `report.compilation`."""

    def __init__(
        self,
        records: rp.Report,
        programs: ProgramIndex,
        compute: ComputeSetIndex,
        variables: VariableIndex,
    ) -> None:
        self.records = records
        self.program_index = programs
        self.variable_index = variables
        self._compute = compute
        self._memory = MemoryIndex(records, compute)

    @cached_property
    def graph(self) -> Graph:
        """Counts over the whole program."""
        counts = self.records.graph_info
        return Graph(
            counts.num_compute_sets,
            counts.num_edges,
            counts.num_variables,
            counts.num_vertices,
        )

    @cached_property
    def target(self) -> Target:
        """The machine."""
        return Target(self.records.target)

    @property
    def tiles(self) -> list[Tile]:
        """The tiles of all chips."""
        return self._memory.tiles

    @cached_property
    def ipus(self) -> list[IPU]:
        """The chips."""
        size = self.records.target.tiles_per_chip
        starts = range(0, len(self.tiles), size)
        return [IPU(self.tiles[start : start + size]) for start in starts]

    @cached_property
    def programs(self) -> list[Program]:
        """Every program, at any depth of the tree."""
        return list(self.program_index.programs.values())

    @cached_property
    def computeSets(self) -> list[ComputeSet]:
        """Every compute set."""
        return list(self._compute.compute_sets.values())

    @cached_property
    def liveness(self) -> rp.Liveness:
        """The figures behind the liveness steps."""
        return rp.liveness(self.records)

    @cached_property
    def livenessProgramSteps(self) -> list[LivenessProgramStep]:
        """The steps at which memory changes, in order of execution."""
        numbers = range(len(self.records.liveness_steps))
        return [LivenessProgramStep(self, number) for number in numbers]

    @cached_property
    def alwaysLiveVariables(self) -> list[Variable]:
        """Variables that hold data all the time."""
        return self.variable_index.always_live()

    def alwaysLiveVariablesForTile(self, tile: int) -> list[Variable]:
        """Variables that hold data all the time on one tile, with their bytes there."""
        return self.variable_index.always_live(tile)

    @property
    def loweredVariables(self) -> LoweredVariables:
        """Pieces of memory on tiles."""
        return LoweredVariables(self.variable_index)
