"""Target of a report: chips, tiles, memory, clock, and constants of a tile."""

from __future__ import annotations

from dataclasses import dataclass, field

from popple.errors import ReportError
from popple.report.codec import Runs

# Words of the format, which other readers compare with.
KINDS = ("IPU", "IPU_MODEL", "CPU")


@dataclass(frozen=True)
class TargetDetails:
    """Constants of the tile and the exchange; defaults are those of `ipu2`."""

    # Read off a genuine profile of a Bow; `popple.record` fills in those of the target.
    supervisor_fetch_delay_cycles: int = 64
    memory_element_offsets: tuple[int, ...] = ()
    interleaved_memory_start: int = 212992
    memory_region_offsets: tuple[int, ...] = (0, 212992)
    tile_memory_base_address: int = 311296
    tiles_per_super_tile: int = 2
    num_worker_contexts: int = 6
    exchange_bytes_per_cycle: int = 4
    memcpy_bytes_per_cycle: int = 8
    instruction_bytes: int = 4
    supports_super_tile_send_receive: bool = True
    global_sync_cycles: int = 600
    global_exchange_packet_bytes: int = 256
    tile_local_sync_delay_cycles: int = 5
    tile_local_exit_delay_cycles: int = 5
    num_stride_bits: int = 10
    data_path_bits: int = 64
    fp8_conv_max_pipeline_depth: int | None = 4
    fp16_conv_max_pipeline_depth: int = 4
    fp32_conv_max_pipeline_depth: int = 4
    fp8_conv_input_loads_per_cycle: int | None = 8
    fp16_conv_input_loads_per_cycle: int = 4
    fp32_conv_input_loads_per_cycle: int = 2
    fp16_in_fp16_out_conv_units: int = 16
    fp16_in_fp32_out_conv_units: int = 8
    fp32_in_fp32_out_conv_units: int = 16
    fp8_in_fp16_out_conv_units: int | None = 0
    conv_coefficient_load_bytes_per_cycle: int = 16
    worker_fetch_delay_cycles: int = 64
    max_run_immediate_offset: int = 262144
    max_repeat_count: int = 65535
    atomic_store_bytes: int = 4


@dataclass(frozen=True)
class TargetInfo:
    """Chips, tiles, memory and clock; all chips of all replicas are counted.

    `sync_delay_cycles_by_tile` is by how much later than the nearest tile a tile
    learns of a sync.
    """

    num_chips: int
    tiles_per_chip: int
    bytes_per_tile: int
    clock_hz: int
    architecture: str
    kind: str = "IPU_MODEL"
    num_replicas: int = 1
    min_sync_delay_cycles: int = 10
    details: TargetDetails = field(default_factory=TargetDetails)
    sync_delay_cycles_by_tile: Runs = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ReportError(f"target kind {self.kind!r} is none of {KINDS}.")
        counts = (self.num_chips, self.tiles_per_chip, self.num_replicas)
        # Replicas have equal numbers of chips; the sizes of one are quotients below.
        if min(counts) < 1 or self.num_chips % self.num_replicas:
            raise ReportError(
                f"{self.num_chips} chips of {self.tiles_per_chip} tiles cannot hold "
                f"{self.num_replicas} replicas."
            )

    @property
    def num_tiles(self) -> int:
        """Tiles of all chips."""
        return self.num_chips * self.tiles_per_chip

    @property
    def bytes_per_chip(self) -> int:
        """Tile memory of one chip."""
        return self.tiles_per_chip * self.bytes_per_tile

    @property
    def total_bytes(self) -> int:
        """Tile memory of all chips."""
        return self.num_chips * self.bytes_per_chip

    @property
    def chips_per_replica(self) -> int:
        """Chips one replica of the model occupies."""
        return self.num_chips // self.num_replicas

    @property
    def tiles_per_replica(self) -> int:
        """Tiles one replica of the model occupies."""
        return self.chips_per_replica * self.tiles_per_chip

    @property
    def bytes_per_replica(self) -> int:
        """Tile memory of one replica of the model."""
        return self.chips_per_replica * self.bytes_per_chip


@dataclass(frozen=True)
class GraphInfo:
    """Counts over the whole compiled program."""

    num_compute_sets: int
    num_edges: int
    num_variables: int
    num_vertices: int
