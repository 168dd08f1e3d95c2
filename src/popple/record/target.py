"""Target of a report: the chips of one replica and their constants."""

from __future__ import annotations

from popple.report import Parameter, TargetDetails, TargetInfo
from popple.target import Chip, Target


def record_target(target: Target) -> TargetInfo:
    """The chips of one replica, as the report describes a machine."""
    chip = target.chip
    return TargetInfo(
        num_chips=target.num_chips,
        tiles_per_chip=chip.num_tiles,
        bytes_per_tile=chip.tile_memory_bytes,
        clock_hz=chip.clock_hz,
        architecture=chip.architecture,
        # The vendor's word for a modelled machine, which its tools show as such.
        kind="IPU_MODEL",
        min_sync_delay_cycles=chip.min_sync_delay_cycles,
        details=_details(chip),
        # Delays of single tiles are not published: every tile has the mean.
        sync_delay_cycles_by_tile=((target.num_tiles, chip.mean_sync_delay_cycles),),
    )


def _details(chip: Chip) -> TargetDetails:
    elements = range(0, chip.tile_memory_bytes, chip.memory_element_bytes)
    return TargetDetails(
        supervisor_fetch_delay_cycles=chip.supervisor_fetch_delay_cycles,
        # Offsets are counted from the start of tile memory, not from its base address.
        memory_element_offsets=tuple(elements),
        interleaved_memory_start=chip.interleaved_start_bytes,
        memory_region_offsets=(0, chip.interleaved_start_bytes),
        tile_memory_base_address=chip.tile_memory_base_address,
        # Tiles of a super tile share their exchange bus.
        tiles_per_super_tile=chip.tiles_per_exchange_bus,
        num_worker_contexts=chip.num_workers,
        exchange_bytes_per_cycle=chip.exchange_bytes_per_cycle,
        memcpy_bytes_per_cycle=chip.memcpy_bytes_per_cycle,
        instruction_bytes=chip.instruction_bytes,
        global_sync_cycles=chip.global_sync_cycles,
        global_exchange_packet_bytes=chip.global_exchange_packet_bytes,
        tile_local_sync_delay_cycles=chip.tile_local_sync_delay_cycles,
        tile_local_exit_delay_cycles=chip.tile_local_exit_delay_cycles,
        num_stride_bits=chip.num_stride_bits,
        data_path_bits=chip.data_path_bits,
        fp8_conv_max_pipeline_depth=chip.fp8_conv_unit_pipeline_depth,
        fp16_conv_max_pipeline_depth=chip.fp16_conv_unit_pipeline_depth,
        fp32_conv_max_pipeline_depth=chip.fp32_conv_unit_pipeline_depth,
        fp8_conv_input_loads_per_cycle=chip.fp8_conv_unit_load_elements,
        fp16_conv_input_loads_per_cycle=chip.fp16_conv_unit_load_elements,
        fp32_conv_input_loads_per_cycle=chip.fp32_conv_unit_load_elements,
        fp16_in_fp16_out_conv_units=chip.fp16_in_fp16_out_conv_units,
        fp16_in_fp32_out_conv_units=chip.fp16_in_fp32_out_conv_units,
        fp32_in_fp32_out_conv_units=chip.fp32_in_fp32_out_conv_units,
        fp8_in_fp16_out_conv_units=chip.fp8_in_fp16_out_conv_units,
        conv_coefficient_load_bytes_per_cycle=chip.conv_unit_max_coeff_load_bytes_per_cycle,
        worker_fetch_delay_cycles=chip.worker_fetch_delay_cycles,
        max_run_immediate_offset=chip.max_run_offset_bytes,
        max_repeat_count=chip.rpt_count_max,
        atomic_store_bytes=chip.atomic_store_bytes,
    )


def record_parameters(target: Target) -> tuple[Parameter, ...]:
    """The target's own options, by the names the format knows."""
    return (
        Parameter("popple.system", target.system.name),
        Parameter("popple.chip", target.chip.name),
        Parameter("popple.replicas", str(target.num_replicas)),
    )
