"""Tables of the target and of the counts of the whole program."""

from __future__ import annotations

import sqlite3

from popple.report.codec import array_of, runs_of
from popple.report.parts.target import GraphInfo, TargetDetails, TargetInfo
from popple.report.tables.rows import (
    FLAG,
    VARINTS,
    Column,
    RecordTable,
    columns,
    insert_rows,
    select_rows,
)

GRAPH_INFO = RecordTable(
    "graph_info",
    GraphInfo,
    columns("num_compute_sets", "num_edges", "num_vertices", num_variables="num_vars"),
)

_TARGET = RecordTable(
    "target_info",
    TargetInfo,
    columns(
        "bytes_per_tile",
        "architecture",
        "num_replicas",
        num_chips="num_ipus",
        tiles_per_chip="tiles_per_ipu",
        clock_hz="clock_frequency",
        min_sync_delay_cycles="min_sync_delay",
        kind="type_",
    ),
)

# Redundant in the format: each follows from the columns above.
_DERIVED = columns(
    "num_tiles",
    "tiles_per_replica",
    bytes_per_chip="bytes_per_ipu",
    total_bytes="total_memory",
    chips_per_replica="ipus_per_replica",
    bytes_per_replica="memory_per_replica",
)

_DETAILS = RecordTable(
    "target_info",
    TargetDetails,
    (
        *columns(
            supervisor_fetch_delay_cycles="supervisorInstrFetchDelay",
            interleaved_memory_start="interleavedMemoryStart",
            tile_memory_base_address="tileMemoryBaseAddress",
            tiles_per_super_tile="tilesPerSuperTile",
            num_worker_contexts="numWorkerContexts",
            exchange_bytes_per_cycle="exchangeBytesPerCycle",
            memcpy_bytes_per_cycle="memcpyBytesPerCycle",
            instruction_bytes="instructionBytes",
            global_sync_cycles="globalSyncCycles",
            global_exchange_packet_bytes="globalExchangePacketBytes",
            tile_local_sync_delay_cycles="tileLocalSyncSyncDelay",
            tile_local_exit_delay_cycles="tileLocalSyncExitDelay",
            num_stride_bits="numStrideBits",
            data_path_bits="dataPathWidth",
            fp8_conv_max_pipeline_depth="fp8ConvUnitMaxPipelineDepth",
            fp16_conv_max_pipeline_depth="fp16ConvUnitMaxPipelineDepth",
            fp32_conv_max_pipeline_depth="fp32ConvUnitMaxPipelineDepth",
            fp8_conv_input_loads_per_cycle="fp8ConvUnitInputLoadElemsPerCycle",
            fp16_conv_input_loads_per_cycle="fp16ConvUnitInputLoadElemsPerCycle",
            fp32_conv_input_loads_per_cycle="fp32ConvUnitInputLoadElemsPerCycle",
            fp16_in_fp16_out_conv_units="fp16InFp16OutConvUnitsPerTile",
            fp16_in_fp32_out_conv_units="fp16InFp32OutConvUnitsPerTile",
            fp32_in_fp32_out_conv_units="fp32InFp32OutConvUnitsPerTile",
            fp8_in_fp16_out_conv_units="fp8InFp16OutConvUnitsPerTile",
            conv_coefficient_load_bytes_per_cycle="convUnitCoeffLoadBytesPerCycle",
            worker_fetch_delay_cycles="workerInstrFetchDelay",
            max_run_immediate_offset="maxImmediateOffsetInRunInstr",
            max_repeat_count="rptCountMax",
            atomic_store_bytes="atomicStoreGranularity",
        ),
        Column("memory_element_offsets", "memoryElementOffsets", VARINTS),
        Column("memory_region_offsets", "memoryRegionsOffsets", VARINTS),
        Column(
            "supports_super_tile_send_receive", "supportsSuperTileSendReceive", FLAG
        ),
    ),
)

_DELAY_COLUMNS = ("tile", "delay")


def insert_target(connection: sqlite3.Connection, target: TargetInfo) -> None:
    """Write the target, its redundant columns and its sync delays."""
    stored = (*_TARGET.columns, *_DERIVED)
    names = [column.name for column in (*stored, *_DETAILS.columns)]
    values = [getattr(target, column.attribute) for column in stored]
    row = (*values, *_DETAILS.encode(target.details))
    insert_rows(connection, _TARGET.name, names, [row])
    delays: list[int] = array_of(target.sync_delay_cycles_by_tile).tolist()
    insert_rows(connection, "relative_sync_delay", _DELAY_COLUMNS, enumerate(delays))


def select_target(connection: sqlite3.Connection) -> TargetInfo:
    """Read the target."""
    delays = select_rows(connection, "relative_sync_delay", _DELAY_COLUMNS)
    names = [column.name for column in _TARGET.columns]
    # Two records share one row of the table: each reads its own columns.
    (row,) = select_rows(connection, _TARGET.name, names)
    attributes = [column.attribute for column in _TARGET.columns]
    (details,) = _DETAILS.select(connection)
    return TargetInfo(
        **dict(zip(attributes, row, strict=True)),
        details=details,
        sync_delay_cycles_by_tile=runs_of([delay for _, delay in delays]),
    )
