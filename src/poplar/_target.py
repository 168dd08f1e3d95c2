"""Target: the constants of a machine under Poplar's names."""

from __future__ import annotations

import enum
from dataclasses import replace

from popple.target import System, load_system


class TargetType(enum.Enum):
    """What a target is; Popple's are modelled IPUs, which programs take for IPUs."""

    CPU = 0
    IPU_MODEL = 1
    IPU = 2


class Target:
    """Some IPUs of a system, to ask for their constants."""

    def __init__(self, system: System, numIPUs: int) -> None:
        self._system = system
        self._num_ipus = numIPUs

    @staticmethod
    def createIPUTarget(
        numIPUs: int, tilesPerIPU: int | str = 0, systemType: str = ""
    ) -> Target:
        """A target of that many IPUs: `createIPUTarget(1, "ipu2")`.

        The second argument may be a number of tiles per IPU, or the system already.
        """
        tiles = 0 if isinstance(tilesPerIPU, str) else tilesPerIPU
        name = tilesPerIPU if isinstance(tilesPerIPU, str) else systemType
        system = load_system(name or "bow-pod16")
        if tiles:
            system = replace(system, chip=replace(system.chip, num_tiles=tiles))
        return Target(system, numIPUs)

    def getTargetType(self) -> TargetType:
        """IPU."""
        return TargetType.IPU

    def getTargetArchString(self) -> str:
        """The architecture: ipu1, ipu2 or ipu21."""
        return self._system.chip.architecture

    def getTargetSystemString(self) -> str:
        """The name of the system."""
        return self._system.name

    def getNumIPUs(self) -> int:
        """IPUs of the target."""
        return self._num_ipus

    def getTilesPerIPU(self) -> int:
        """Tiles of one IPU."""
        return self._system.chip.num_tiles

    def getNumTiles(self) -> int:
        """Tiles of all IPUs."""
        return self._num_ipus * self._system.chip.num_tiles

    def getNumWorkerContexts(self) -> int:
        """Worker threads of a tile."""
        return self._system.chip.num_workers

    def getBytesPerTile(self) -> int:
        """Memory of a tile."""
        return self._system.chip.tile_memory_bytes

    def getMemoryBytes(self) -> int:
        """Memory of all tiles of all IPUs."""
        return self.getNumTiles() * self.getBytesPerTile()

    def getTileClockFrequency(self) -> float:
        """Cycles per second."""
        return float(self._system.chip.clock_hz)

    def getExchangeBytesPerCycle(self) -> int:
        """What a tile sends in a cycle."""
        return self._system.chip.exchange_bytes_per_cycle

    def getDataPathWidth(self) -> int:
        """Bits of a load or a store."""
        return self._system.chip.data_path_bits

    def getMemcpyBytesPerCycle(self) -> int:
        """What a tile copies in a cycle."""
        return self._system.chip.memcpy_bytes_per_cycle

    def getAtomicStoreGranularity(self) -> int:
        """The smallest store, in bytes."""
        return self._system.chip.atomic_store_bytes

    def getFp16InFp16OutConvUnitsPerTile(self) -> int:
        """Convolution units with FP16 inputs and sums."""
        return self._system.chip.fp16_in_fp16_out_conv_units

    def getFp16InFp32OutConvUnitsPerTile(self) -> int:
        """Convolution units with FP16 inputs and FP32 sums."""
        return self._system.chip.fp16_in_fp32_out_conv_units

    def getFp32InFp32OutConvUnitsPerTile(self) -> int:
        """Convolution units with FP32 inputs and sums."""
        return self._system.chip.fp32_in_fp32_out_conv_units

    def getRptCountMax(self) -> int:
        """Iterations of a repeat instruction."""
        return self._system.chip.rpt_count_max

    def getNumStrideBits(self) -> int:
        """Bits of a stride in an instruction."""
        return self._system.chip.num_stride_bits

    def getMaxIPUSyncDelay(self) -> int:
        """Cycles until the farthest tile has heard of a sync."""
        return self._system.chip.max_sync_delay_cycles

    def getMinIPUSyncDelay(self) -> int:
        """Cycles until the nearest tile has heard of a sync."""
        return self._system.chip.min_sync_delay_cycles

    def getGlobalSyncCycles(self) -> int:
        """Cycles of a sync of several IPUs."""
        return self._system.chip.global_sync_cycles

    def getTilesPerSharedExchangeBus(self) -> int:
        """Tiles that can share the width of their buses."""
        return self._system.chip.tiles_per_exchange_bus

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Target):
            return NotImplemented
        return (self._system, self._num_ipus) == (other._system, other._num_ipus)

    def __hash__(self) -> int:
        return hash((self._system.name, self._num_ipus))

    def __repr__(self) -> str:
        return f"<Target {self._num_ipus} IPUs of {self._system.name}>"
