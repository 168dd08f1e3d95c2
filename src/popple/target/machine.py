"""Chip and System: constants of a processor, and of links, host and racks around it.

In: constants from TOML files. Out: a frozen, validated `Chip` and `System`: the numbers
that plan rules and the simulation are made of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from popple.errors import TargetError
from popple.target.schema import Sources, constant, verify_constants

ARCHITECTURES = ("ipu1", "ipu2", "ipu21")
TOPOLOGIES = ("single", "ladder", "mesh", "torus")


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One processor: its tiles, their memory, exchange, AMP units, sync and power.

    `sources` pairs each constant with where its value was found. It takes no part in
    comparison: two chips of equal numbers are the same chip.
    """

    name: str
    architecture: str = field(metadata=constant("name", str, choices=ARCHITECTURES))
    num_tiles: int = field(metadata=constant("tiles"))
    num_workers: int = field(metadata=constant("workers"))
    clock_hz: int = field(metadata=constant("Hz"))

    # Tile memory. From `interleaved_start_bytes` on, two elements are interleaved and
    # one instruction can load 128 bit; code can only be fetched from below it. Operands
    # of the convolution units start at multiples of `operand_bytes`, or of twice that
    # where elements are interleaved.
    tile_memory_bytes: int = field(metadata=constant("B"))
    interleaved_start_bytes: int = field(metadata=constant("B"))
    memory_element_bytes: int = field(metadata=constant("B"))
    operand_bytes: int = field(metadata=constant("B"))
    tile_memory_base_address: int = field(metadata=constant("address"))
    data_path_bits: int = field(metadata=constant("bit", least=32))
    atomic_store_bytes: int = field(metadata=constant("B"))
    instruction_bytes: int = field(metadata=constant("B"))
    memcpy_bytes_per_cycle: int = field(metadata=constant("B/cycle"))
    worker_stack_bytes: int = field(metadata=constant("B"))
    supervisor_stack_bytes: int = field(metadata=constant("B"))

    # Exchange between tiles; the latency is the cost of a phase besides its payload.
    exchange_bytes_per_cycle: int = field(metadata=constant("B/cycle"))
    tiles_per_exchange_bus: int = field(metadata=constant("tiles"))
    exchange_latency_cycles: int = field(metadata=constant("cycles"))
    global_exchange_packet_bytes: int = field(metadata=constant("B"))

    # Convolution units per tile, by type of input and of partial sum.
    fp16_in_fp16_out_conv_units: int = field(metadata=constant("units"))
    fp16_in_fp32_out_conv_units: int = field(metadata=constant("units"))
    fp32_in_fp32_out_conv_units: int = field(metadata=constant("units"))
    fp8_in_fp16_out_conv_units: int = field(
        metadata=constant("units", can_be_zero=True)
    )
    fp8_conv_unit_load_elements: int = field(metadata=constant("elements/cycle"))
    fp16_conv_unit_load_elements: int = field(metadata=constant("elements/cycle"))
    fp32_conv_unit_load_elements: int = field(metadata=constant("elements/cycle"))
    fp8_conv_unit_pipeline_depth: int = field(metadata=constant("stages"))
    fp16_conv_unit_pipeline_depth: int = field(metadata=constant("stages"))
    fp32_conv_unit_pipeline_depth: int = field(metadata=constant("stages", least=2))
    # What the planner uses, and what the hardware could do from interleaved memory.
    conv_unit_coeff_load_bytes_per_cycle: int = field(metadata=constant("B/cycle"))
    conv_unit_max_coeff_load_bytes_per_cycle: int = field(metadata=constant("B/cycle"))

    # Limits of the instruction set.
    rpt_count_max: int = field(metadata=constant("iterations"))
    num_stride_bits: int = field(metadata=constant("bit"))
    max_run_offset_bytes: int = field(metadata=constant("B"))

    # Synchronisation: the delay of a tile lies between 0 and `max_sync_delay_cycles`.
    min_sync_delay_cycles: int = field(metadata=constant("cycles"))
    mean_sync_delay_cycles: int = field(metadata=constant("cycles"))
    max_sync_delay_cycles: int = field(metadata=constant("cycles"))
    global_sync_cycles: int = field(metadata=constant("cycles"))
    supervisor_fetch_delay_cycles: int = field(metadata=constant("cycles"))
    worker_fetch_delay_cycles: int = field(metadata=constant("cycles"))
    tile_local_sync_delay_cycles: int = field(metadata=constant("cycles"))
    tile_local_exit_delay_cycles: int = field(metadata=constant("cycles"))

    # Limits on the data sheet, both ways where data flow both ways. Tools compare what
    # they measure with them; the simulation uses the rates of `System`.
    memory_bytes_per_second: float = field(metadata=constant("B/s", float))
    num_links: int = field(metadata=constant("links"))
    link_peak_bytes_per_second: float = field(metadata=constant("B/s", float))
    pcie_lanes: int = field(metadata=constant("lanes"))
    pcie_transfers_per_second: float = field(metadata=constant("T/s", float))
    host_peak_bytes_per_second: float = field(metadata=constant("B/s", float))

    # Power: nothing to do; all tiles computing; and what a byte adds that is exchanged.
    idle_watts: float = field(metadata=constant("W", float))
    peak_watts: float = field(metadata=constant("W", float))
    exchange_picojoules_per_byte: float = field(
        metadata=constant("pJ/B", float, can_be_zero=True)
    )

    # Temperatures: of an idle chip and its board, and what each watt above idle adds,
    # of the chip to its die and of all chips of a board to the board.
    idle_die_celsius: float = field(metadata=constant("C", float))
    idle_board_celsius: float = field(metadata=constant("C", float))
    die_kelvin_per_watt: float = field(metadata=constant("K/W", float))
    board_kelvin_per_watt: float = field(metadata=constant("K/W", float))
    thermal_seconds: float = field(metadata=constant("s", float))

    sources: Sources = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        verify_constants(self, self.name)
        self._verify_memory()
        self._verify_order("mean_sync_delay_cycles", "max_sync_delay_cycles")
        self._verify_order("idle_watts", "peak_watts")
        self._verify_order(
            "conv_unit_coeff_load_bytes_per_cycle",
            "conv_unit_max_coeff_load_bytes_per_cycle",
        )

    def _verify_memory(self) -> None:
        self._verify_order("interleaved_start_bytes", "tile_memory_bytes")
        self._verify_order("operand_bytes", "memory_element_bytes")
        stacks = self.supervisor_stack_bytes + self.num_workers * (
            self.worker_stack_bytes
        )
        if stacks > self.tile_memory_bytes:
            raise TargetError(
                f"tile_memory_bytes, {self.tile_memory_bytes}, does not hold the "
                f"stacks of a supervisor and {self.num_workers} workers, {stacks} B.",
                where=self.name,
                remedy="Raise tile_memory_bytes, or lower num_workers or the stacks.",
            )
        element = self.memory_element_bytes
        for key in ("tile_memory_bytes", "interleaved_start_bytes"):
            size: int = getattr(self, key)
            if size % element:
                raise TargetError(
                    f"{key} is {size}, which memory elements of {element} B do not "
                    "divide.",
                    where=self.name,
                    remedy=f"Use {size // element * element} or "
                    f"{(size // element + 1) * element}.",
                )

    def _verify_order(self, lower: str, upper: str) -> None:
        if getattr(self, lower) > getattr(self, upper):
            raise TargetError(
                f"{lower}, {getattr(self, lower)}, is above {upper}, "
                f"{getattr(self, upper)}.",
                where=self.name,
                remedy=f"Lower {lower} or raise {upper}.",
            )


@dataclass(frozen=True, kw_only=True)
class System:
    """A machine one can buy or imagine: chips of one kind, and the ways between them.

    Rates are usable bytes per second in one direction. `link_bytes_per_second` is what
    one chip sends over all its links together; `neighbour_bytes_per_second` what it
    sends to one neighbour over the narrowest bundle. The first `rack_chips` chips, the
    next `rack_chips` and so on reach each other by link; beyond that data passes the
    gateways, whose rate is per machine. `external_sync_ns` is what a sync of all chips
    adds to a sync inside one. `device_order` lists the chips in the order in which
    they join groups (empty: in the order of their ids).
    """

    name: str
    chip: Chip
    aliases: tuple[str, ...] = field(default=(), compare=False)
    device_order: tuple[int, ...] = ()

    num_chips: int = field(metadata=constant("chips"))
    chips_per_machine: int = field(metadata=constant("chips"))
    chips_per_board: int = field(metadata=constant("chips"))
    topology: str = field(metadata=constant("name", str, choices=TOPOLOGIES))
    rack_chips: int = field(metadata=constant("chips"))

    link_bytes_per_second: float = field(
        metadata=constant("B/s", float, can_be_zero=True)
    )
    neighbour_bytes_per_second: float = field(
        metadata=constant("B/s", float, can_be_zero=True)
    )
    link_latency_ns: float = field(metadata=constant("ns", float))
    external_sync_ns: float = field(metadata=constant("ns", float, can_be_zero=True))
    gateway_bytes_per_second: float = field(
        metadata=constant("B/s", float, can_be_zero=True)
    )
    # What a machine's ports carry together, on the data sheet; 0 without a fabric.
    fabric_bits_per_second: float = field(
        metadata=constant("bit/s", float, can_be_zero=True)
    )
    host_bytes_per_second: float = field(metadata=constant("B/s", float))
    host_latency_ns: float = field(metadata=constant("ns", float))
    streaming_memory_bytes_per_machine: int = field(
        metadata=constant("B", can_be_zero=True)
    )
    streaming_bytes_per_second: float = field(
        metadata=constant("B/s", float, can_be_zero=True)
    )

    sources: Sources = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        verify_constants(self, self.name)
        self._verify_groups()
        self._verify_joints()
        self._verify_device_order()

    def _verify_groups(self) -> None:
        for key in ("chips_per_machine", "rack_chips"):
            group: int = getattr(self, key)
            if self.num_chips % group:
                raise TargetError(
                    f"{key}, {group}, does not divide num_chips, {self.num_chips}.",
                    where=self.name,
                    remedy=f"Set {key} to a divisor of {self.num_chips}.",
                )

    def _verify_joints(self) -> None:
        several = self.num_chips > 1
        if several == (self.topology == "single"):
            known = ", ".join(TOPOLOGIES[1:]) if several else "single"
            self._refuse(
                f"topology is {self.topology!r}", f"Set it to one of: {known}."
            )
        links = min(self.link_bytes_per_second, self.neighbour_bytes_per_second)
        if several and not links:
            self._refuse("its links carry no data", "Set both link rates above 0 B/s.")
        if self.num_chips > self.rack_chips and not self.gateway_bytes_per_second:
            self._refuse(
                f"rack_chips is {self.rack_chips} and no gateway joins the racks",
                "Raise rack_chips or set gateway_bytes_per_second above 0 B/s.",
            )
        if self.streaming_memory_bytes_per_machine and not (
            self.streaming_bytes_per_second
        ):
            self._refuse(
                "its streaming memory carries no data",
                "Set streaming_bytes_per_second above 0 B/s.",
            )

    def _verify_device_order(self) -> None:
        order = self.device_order
        if order and sorted(order) != list(range(self.num_chips)):
            self._refuse(
                "device_order does not name each chip once",
                f"List every number from 0 to {self.num_chips - 1}, or leave it out.",
            )

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise TargetError(
            f"The system has {self.num_chips} chips, but {what}.",
            where=self.name,
            remedy=remedy,
        )
